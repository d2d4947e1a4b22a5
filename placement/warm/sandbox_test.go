package warm_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/provision"
	"jr2.dev/jr2/placement/warm"
)

// TestAPlaceholderIsAComposedSandbox compares with the pod that the operator makes of what a Workspace composes, sidecars and all.
func TestAPlaceholderIsAComposedSandbox(t *testing.T) {
	gibi := int64(1) << 30
	for _, limits := range []config.Limits{{}, {Memory: ptr(6 * gibi), CPU: ptr(int64(2500))}, {CPU: ptr(int64(300))}} {
		inst := &config.Instance{Name: "my-instance", KitVersion: config.DefaultKitVersion, Sandbox: config.Sandbox{Resources: limits}}
		request, err := provision.Compose(provision.Composition{
			Instance: inst, Namespace: "team-a", Workflow: "hold", Run: "r1", Name: "ws-r1", SigningKey: config.NewSecret("0123456789abcdef0123456789abcdef"),
			Images: provision.Images{Harness: "r.test/harness:1", Custodian: "r.test/envoy:1"},
		})
		must(t, err)
		sandbox := placement.Requests(controller.Pod(request.Sandbox, nil))
		size := config.ResolveSize(config.Workspace{}, limits).Size
		_, deployment := rendered(t, held(), home(), warm.Sandboxes{Share: placement.Share{CPU: size.CPU, Memory: size.Memory, Disk: config.WorkDisk}})
		if placeholder := placement.Requests(podOf(deployment.Spec.Template)); !equality.Semantic.DeepEqual(sandbox, placeholder) {
			t.Errorf("a Sandbox asks for %v, a placeholder for %v", sandbox, placeholder)
		}
	}
}
