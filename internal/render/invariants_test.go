package render

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
	"jr2.dev/jr2/internal/names"
)

// podOf returns the pod template of a workload.
func podOf(object runtime.Object) (name string, template *corev1.PodTemplateSpec) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o.Name, &o.Spec.Template
	case *appsv1.DaemonSet:
		return o.Name, &o.Spec.Template
	case *appsv1.StatefulSet:
		return o.Name, &o.Spec.Template
	}
	return "", nil
}

func podsOf(t *testing.T, in Input) map[string]*corev1.PodTemplateSpec {
	t.Helper()
	pods := map[string]*corev1.PodTemplateSpec{}
	for _, object := range everything(t, in) {
		if name, template := podOf(object); template != nil {
			pods[name] = template
		}
	}
	return pods
}

func TestEveryObjectSaysWhoseItIs(t *testing.T) {
	for _, in := range []Input{ping(t), hold(t), review(t)} {
		for _, object := range everything(t, in) {
			o := plain(t, object)
			labels := o.GetLabels()
			switch {
			case o.GetKind() == "Namespace" && o.GetName() != names.OperatorNamespace:
				if !reflect.DeepEqual(labels, map[string]string{names.LabelInstance: in.Instance.Name}) {
					t.Errorf("Namespace %s has the labels %v", o.GetName(), labels)
				}
			case labels[names.LabelManagedBy] != names.ManagedBy:
				t.Errorf("%s %s lacks %s", o.GetKind(), o.GetName(), names.LabelManagedBy)
			case o.GetNamespace() == in.namespace() && labels[names.LabelInstance] != in.Instance.Name:
				t.Errorf("%s %s lacks %s", o.GetKind(), o.GetName(), names.LabelInstance)
			case o.GetNamespace() != in.namespace() && labels[names.LabelInstance] != "":
				t.Errorf("%s %s is shared and belongs to an Instance", o.GetKind(), o.GetName())
			}
			if o.GetNamespace() != "" && o.GetNamespace() != in.namespace() && o.GetNamespace() != names.OperatorNamespace {
				t.Errorf("%s %s lies in %s", o.GetKind(), o.GetName(), o.GetNamespace())
			}
		}
	}
}

func TestPodsOfOurs(t *testing.T) {
	for _, in := range []Input{ping(t), hold(t), review(t)} {
		for name, pod := range podsOf(t, in) {
			if len(pod.Spec.ImagePullSecrets) > 0 {
				t.Errorf("%s has image pull secrets", name)
			}
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				if c.ImagePullPolicy != corev1.PullIfNotPresent {
					t.Errorf("%s/%s has the pull policy %q", name, c.Name, c.ImagePullPolicy)
				}
				if _, ok := c.Resources.Limits[corev1.ResourceCPU]; ok {
					t.Errorf("%s/%s has a cpu limit", name, c.Name)
				}
				seen := map[string]bool{}
				for _, e := range c.Env {
					if seen[e.Name] {
						t.Errorf("%s/%s has %s twice", name, c.Name, e.Name)
					}
					seen[e.Name] = true
				}
			}
		}
	}
}

func TestPriorityClasses(t *testing.T) {
	for _, test := range []struct {
		name    string
		classes config.PriorityClasses
		made    []string
		control string
		sandbox string
	}{
		{"neither", config.PriorityClasses{}, []string{names.PriorityControl, names.PrioritySandbox}, names.PriorityControl, names.PrioritySandbox},
		{"control", config.PriorityClasses{Control: text("crit")}, []string{names.PrioritySandbox}, "crit", names.PrioritySandbox},
		{"sandbox", config.PriorityClasses{Sandbox: text("low")}, []string{names.PriorityControl}, names.PriorityControl, "low"},
		{"both", config.PriorityClasses{Control: text("crit"), Sandbox: text("low")}, nil, "crit", "low"},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := review(t)
			in.Instance.PriorityClasses = test.classes
			var made []string
			for _, class := range PriorityClasses(in) {
				made = append(made, class.Name)
				if class.GlobalDefault {
					t.Errorf("%s is the default of the cluster", class.Name)
				}
			}
			if !reflect.DeepEqual(made, test.made) {
				t.Errorf("made %v, want %v", made, test.made)
			}
			got := map[string]string{}
			for name, pod := range podsOf(t, in) {
				got[name] = pod.Spec.PriorityClassName
			}
			want := map[string]string{names.OperatorDeployment: test.control, names.Orchestrator: test.control, names.RepoCacheName: test.control, names.InstanceHarnessName: test.sandbox}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("classes of pods: %v, want %v", got, want)
			}
		})
	}
}

func TestOnlyTheRepoCacheIsPlaced(t *testing.T) {
	in := hold(t)
	in.Instance.Workflows[1].Agents = []config.Agent{{Name: "a", Access: "none"}}
	for name, pod := range podsOf(t, in) {
		placed := name == names.RepoCacheName
		if got := reflect.DeepEqual(pod.Spec.NodeSelector, in.Instance.Sandbox.NodeSelector); got != placed {
			t.Errorf("%s has the node selector %v", name, pod.Spec.NodeSelector)
		}
		if got := reflect.DeepEqual(pod.Spec.Tolerations, in.Instance.Sandbox.Tolerations); got != placed {
			t.Errorf("%s has the tolerations %v", name, pod.Spec.Tolerations)
		}
	}
}

func TestLayersPointAtWhatIsRendered(t *testing.T) {
	for name, test := range map[string]struct {
		in   Input
		want []string
	}{
		"ping":   {ping(t), []string{"operator", "orchestrator"}},
		"hold":   {hold(t), []string{"operator", "orchestrator", "repo cache"}},
		"review": {review(t), []string{"operator", "orchestrator", "repo cache", "instance harness"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			objects := everything(t, test.in)
			for _, layer := range Layers(test.in) {
				got = append(got, layer.Name)
				checkLayer(t, layer, objects)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("layers %v, want %v", got, test.want)
			}
			if rest := len(podsOf(t, test.in)); rest != len(got) {
				t.Errorf("%d workloads and %d layers", rest, len(got))
			}
		})
	}
}

func checkLayer(t *testing.T, layer Layer, objects []runtime.Object) {
	t.Helper()
	for _, object := range objects {
		name, template := podOf(object)
		if template == nil || name != layer.Object {
			continue
		}
		o := plain(t, object)
		if o.GetKind() != layer.Kind || o.GetNamespace() != layer.Namespace || o.GetLabels()[names.LabelVersion] == "" {
			t.Errorf("%s: rendered as %s in %s with %v", layer.Name, o.GetKind(), o.GetNamespace(), o.GetLabels())
		}
		key, value, _ := strings.Cut(layer.Selector, "=")
		if template.Labels[key] != value {
			t.Errorf("%s: %q does not select %v", layer.Name, layer.Selector, template.Labels)
		}
		for _, c := range template.Spec.Containers {
			if c.Name == layer.Container && c.Image == layer.Image {
				return
			}
		}
		t.Errorf("%s: no container %s with %s", layer.Name, layer.Container, layer.Image)
		return
	}
	t.Errorf("%s: %s is not rendered", layer.Name, layer.Object)
}

func TestValuesOfSecretsStandInSecretsAlone(t *testing.T) {
	in := review(t)
	where := map[string]string{
		"literal-of-search": names.HeldSecrets, "literal-of-provider": names.HeldSecrets,
		"literal-of-log-level": names.HarnessEnvSecret, "literal-of-git": names.InstanceSecret,
	}
	found := map[string]string{}
	for _, object := range everything(t, in) {
		if secret, ok := object.(*corev1.Secret); ok {
			for _, value := range secret.Data {
				found[string(value)] += secret.Name
			}
			continue
		}
		text := manifest(t, []runtime.Object{object})
		if bytes.Contains(text, []byte("literal-of-")) || bytes.Contains(text, []byte(in.SigningKey.Reveal())) {
			t.Errorf("%s holds a value of a secret", object.GetObjectKind().GroupVersionKind().Kind)
		}
	}
	for value, name := range where {
		if found[value] != name {
			t.Errorf("%s stands in %q, want %q", value, found[value], name)
		}
	}
}

// What a container reads once must roll its pod when it changes, and nothing else may.
func TestWhatRollsPods(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Input)
		rolls  []string
	}{
		"nothing":        {func(*Input) {}, nil},
		"image map":      {func(in *Input) { in.ImageMap = `{"sandbox": {}}` }, nil},
		"a git token":    {func(in *Input) { in.Env = func(string) (string, bool) { return "other", true } }, []string{names.Orchestrator}},
		"a held literal": {func(in *Input) { in.Instance.Secrets[0].Value = config.NewSecret("other") }, []string{names.InstanceHarnessName}},
		"a new certificate": {func(in *Input) {
			pair := in.Certificates.Hosts["t.example.com-8443"]
			pair.Cert = []byte("another")
			in.Certificates.Hosts["t.example.com-8443"] = pair
		}, []string{names.InstanceHarnessName}},
		"a literal of env":    {func(in *Input) { in.Instance.Harness.Env[0].Value = config.NewSecret("other") }, []string{names.InstanceHarnessName}},
		"a gateway":           {func(in *Input) { in.Instance.Harness.Catalog = nil }, []string{names.InstanceHarnessName}},
		"a new Workflow":      {func(in *Input) { in.Instance.Workflows = append(in.Instance.Workflows, config.Workflow{Name: "x"}) }, nil},
		"a node selector":     {func(in *Input) { in.Instance.Sandbox.NodeSelector = map[string]string{"a": "b"} }, []string{names.RepoCacheName}},
		"the signing key":     {func(in *Input) { in.SigningKey = config.NewSecret("other") }, []string{names.Orchestrator, names.InstanceHarnessName}},
		"the control class":   {func(in *Input) { in.Instance.PriorityClasses.Control = text("c") }, []string{names.OperatorDeployment, names.Orchestrator, names.RepoCacheName}},
		"the Kit's operator":  {func(in *Input) { in.Kit.Operator = "x" }, []string{names.OperatorDeployment, names.RepoCacheName}},
		"the Kit's version":   {func(in *Input) { in.Kit.Version = "9.9.9" }, nil},
		"the Custodian image": {func(in *Input) { in.Kit.Custodian = "x" }, []string{names.InstanceHarnessName}},
	} {
		t.Run(name, func(t *testing.T) {
			before, in := podsOf(t, review(t)), review(t)
			test.change(&in)
			after := podsOf(t, in)
			rolled := map[string]bool{}
			for workload := range before {
				if !reflect.DeepEqual(before[workload], after[workload]) {
					rolled[workload] = true
				}
			}
			want := map[string]bool{}
			for _, workload := range test.rolls {
				want[workload] = true
			}
			if !reflect.DeepEqual(rolled, want) {
				t.Errorf("rolls %v, want %v", rolled, want)
			}
		})
	}
}

func TestIncompleteInput(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Input)
		want   error
	}{
		"no Instance":      {func(in *Input) { in.Instance = nil }, ErrNoInstance},
		"no certificates":  {func(in *Input) { in.Certificates = nil }, ErrNoCertificates},
		"one is missing":   {func(in *Input) { delete(in.Certificates.Hosts, "t.example.com-8443") }, ErrNoCertificates},
		"no signing key":   {func(in *Input) { in.SigningKey = config.Secret{} }, ErrNoSigningKey},
		"no image map":     {func(in *Input) { in.ImageMap = "" }, ErrNoImageMap},
		"null image map":   {func(in *Input) { in.ImageMap = "null" }, ErrNoImageMap},
		"list of images":   {func(in *Input) { in.ImageMap = "[]" }, ErrNoImageMap},
		"no CA bundle":     {func(in *Input) { in.CABundle = nil }, ErrNoCABundle},
		"nothing is wrong": {func(*Input) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := review(t)
			test.change(&in)
			if _, err := Instance(in); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
