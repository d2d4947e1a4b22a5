package controller_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"jr2.dev/jr2/placement/controller"
	"jr2.dev/jr2/placement/v1alpha1"
)

// author is a client of an account that may write Sandboxes and nothing else, as the Orchestrator's.
func (s *site) author() client.Client {
	s.Helper()
	s.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "author"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.Group}, Resources: []string{v1alpha1.SandboxResource}, Verbs: []string{"*"}}}})
	s.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "author"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "author"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "author", Namespace: s.namespace}}})
	cfg := rest.CopyConfig(shared.Config())
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + s.namespace + ":author"}
	c, err := newClient(cfg)
	if err != nil {
		s.Fatal(err)
	}
	s.until("the author has its rights", func() bool {
		return c.List(s.Context(), &v1alpha1.SandboxList{}, client.InNamespace(s.namespace)) == nil
	})
	return c
}

// allow writes the allowance of the namespace, as up does.
func (s *site) allow(value string) {
	s.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationAllowance: value}}})
	if err != nil {
		s.Fatal(err)
	}
	if err := s.Patch(s.Context(), namespace, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		s.Fatal(err)
	}
}

// tolerateAll allows what a configuration may say: the Sandboxes stay on a node whatever happens to it.
func (s *site) tolerateAll(selector map[string]string) {
	s.Helper()
	s.allow(v1alpha1.Allowance{NodeSelector: selector, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}.String())
}

func container(edit func(*corev1.Container)) corev1.Container {
	c := corev1.Container{Name: "other", Image: "registry.example.com/other:1"}
	edit(&c)
	return c
}

// rights are what a container says of its own.
type rights = corev1.SecurityContext

// TestASandboxGetsNoMoreThanItsAuthorMay has the ways in which an account that may make no pods asks the operator for one that reaches the node: the
// API server refuses each, and names the field.
func TestASandboxGetsNoMoreThanItsAuthorMay(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	author := s.author()
	s.start(nil, controller.Options{})
	in := func(c *corev1.Container, r *rights) { c.SecurityContext = r }
	for name, test := range map[string]struct {
		field string
		edit  func(*v1alpha1.SandboxSpec)
	}{
		"host-path": {"spec.volumes[0]", func(spec *v1alpha1.SandboxSpec) {
			spec.Volumes = []corev1.Volume{{Name: "root", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}},
		"cache-of-another": {"spec.volumes[0]", func(spec *v1alpha1.SandboxSpec) {
			spec.Repos = []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}}
			spec.Volumes = []corev1.Volume{{Name: "repo-app", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/jr2/other/repos/app"}}}}
		}},
		"privileged": {"spec.securityContext.privileged", func(spec *v1alpha1.SandboxSpec) { spec.SecurityContext = &rights{Privileged: ptr.To(true)} }},
		"privileged-sidecar": {"spec.sidecars[0].securityContext.privileged", func(spec *v1alpha1.SandboxSpec) {
			spec.Sidecars = []corev1.Container{container(func(c *corev1.Container) { in(c, &rights{Privileged: ptr.To(true)}) })}
		}},
		"privileged-init": {"spec.initContainers[0].securityContext.privileged", func(spec *v1alpha1.SandboxSpec) {
			spec.InitContainers = []corev1.Container{container(func(c *corev1.Container) { in(c, &rights{Privileged: ptr.To(true)}) })}
		}},
		"capability": {"spec.securityContext.capabilities.add[0]", func(spec *v1alpha1.SandboxSpec) {
			spec.SecurityContext = &rights{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}
		}},
		"all-capabilities": {"spec.sidecars[0].securityContext.capabilities.add[1]", func(spec *v1alpha1.SandboxSpec) {
			spec.Sidecars = []corev1.Container{container(func(c *corev1.Container) {
				in(c, &rights{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CHOWN", "ALL"}}})
			})}
		}},
		"host-port": {"spec.sidecars[0].ports[0].hostPort", func(spec *v1alpha1.SandboxSpec) {
			spec.Sidecars = []corev1.Container{container(func(c *corev1.Container) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: corev1.ProtocolTCP}}
			})}
		}},
		"unmasked": {"spec.securityContext.procMount", func(spec *v1alpha1.SandboxSpec) {
			spec.SecurityContext = &rights{ProcMount: ptr.To(corev1.UnmaskedProcMount)}
		}},
		"unconfined": {"spec.securityContext.seccompProfile.type", func(spec *v1alpha1.SandboxSpec) {
			spec.SecurityContext = &rights{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}
		}},
		"no-apparmor": {"spec.initContainers[0].securityContext.appArmorProfile.type", func(spec *v1alpha1.SandboxSpec) {
			spec.InitContainers = []corev1.Container{container(func(c *corev1.Container) {
				in(c, &rights{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}})
			})}
		}},
		"selinux": {"spec.securityContext.seLinuxOptions.type", func(spec *v1alpha1.SandboxSpec) {
			spec.SecurityContext = &rights{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}
		}},
		"host-process": {"spec.securityContext.windowsOptions.hostProcess", func(spec *v1alpha1.SandboxSpec) {
			spec.SecurityContext = &rights{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: ptr.To(true)}}
		}},
		"probe-of-another-host": {"spec.readinessProbe.httpGet.host", func(spec *v1alpha1.SandboxSpec) {
			spec.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)}}}
		}},
		"account-token": {"spec.volumes[0].projected.sources[0]", func(spec *v1alpha1.SandboxSpec) {
			spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}}
		}},
		"key-that-climbs": {"spec.repos[0].key", func(spec *v1alpha1.SandboxSpec) {
			spec.Repos = []v1alpha1.SandboxRepo{{Key: "../../other/repos/app", URL: "https://git.example.com/app"}}
		}},
	} {
		box := sandbox(name, func(b *v1alpha1.Sandbox) { b.Namespace = s.namespace; test.edit(&b.Spec) })
		err := author.Create(t.Context(), box)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field) {
			t.Errorf("%s: %v, want %s refused", name, err, test.field)
		}
	}
	// What the schema can't say the operator does, and makes no pod.
	for name, test := range map[string]struct {
		field string
		edit  func(*v1alpha1.SandboxSpec)
	}{
		"system-class": {"spec.priorityClassName", func(spec *v1alpha1.SandboxSpec) { spec.PriorityClassName = "system-node-critical" }},
		"tolerates-all": {"spec.tolerations[0]: without a key", func(spec *v1alpha1.SandboxSpec) {
			spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}},
		"one-node": {"spec.nodeSelector: kubernetes.io/hostname", func(spec *v1alpha1.SandboxSpec) {
			spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "roomy"}
		}},
		"control-plane": {"spec.tolerations[0]: node-role.kubernetes.io/control-plane", func(spec *v1alpha1.SandboxSpec) {
			spec.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}
		}},
		"writes-repository": {"spec.sidecars[0].volumeMounts[0].readOnly", func(spec *v1alpha1.SandboxSpec) {
			spec.Repos = []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}}
			spec.Sidecars = []corev1.Container{container(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{Name: "repo-app", MountPath: "/w"}} })}
		}},
		"shadows-repository": {`spec.volumes[0]: "repo-app"`, func(spec *v1alpha1.SandboxSpec) {
			spec.Repos = []v1alpha1.SandboxRepo{{Key: "app", URL: "https://git.example.com/app"}}
			spec.Volumes = []corev1.Volume{{Name: "repo-app", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}},
	} {
		box := sandbox(name, func(b *v1alpha1.Sandbox) { b.Namespace = s.namespace; test.edit(&b.Spec) })
		if err := author.Create(t.Context(), box); err != nil {
			t.Fatal(err)
		}
		if c := s.refusedFor(name, v1alpha1.ReasonNotAllowed); !strings.Contains(c.Message, test.field) {
			t.Errorf("%s: %q, want %s named", name, c.Message, test.field)
		}
	}
	pods := new(corev1.PodList)
	if err := s.List(t.Context(), pods, client.InNamespace(s.namespace)); err != nil || len(pods.Items) > 0 {
		t.Errorf("%d pods, %v", len(pods.Items), err)
	}
}

// TestTheInstancesConfigurationBoundsItsSandboxes: an annotation of the Namespace, which no editor of what is in it can write, says where they may run.
func TestTheInstancesConfigurationBoundsItsSandboxes(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Value: 5}
	if err := s.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	gpu := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	s.allow(v1alpha1.Allowance{PriorityClassName: class.Name, NodeSelector: map[string]string{"pool": "a"}, Tolerations: []corev1.Toleration{gpu}}.String())
	s.start(nil, controller.Options{})
	for name, test := range map[string]struct {
		field string
		edit  func(*v1alpha1.SandboxSpec)
	}{
		"less": {"", func(*v1alpha1.SandboxSpec) {}},
		"just-that": {"", func(spec *v1alpha1.SandboxSpec) {
			spec.PriorityClassName, spec.Tolerations = class.Name, []corev1.Toleration{gpu}
		}},
		"another":      {"spec.priorityClassName", func(spec *v1alpha1.SandboxSpec) { spec.PriorityClassName = "jr2-control" }},
		"another-pool": {"spec.nodeSelector: pool=b", func(spec *v1alpha1.SandboxSpec) { spec.NodeSelector = map[string]string{"pool": "b"} }},
		"wider": {"spec.tolerations[0]: gpu", func(spec *v1alpha1.SandboxSpec) {
			spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}},
		"one-more": {"spec.tolerations[1]: tpu", func(spec *v1alpha1.SandboxSpec) {
			spec.Tolerations = []corev1.Toleration{gpu, {Key: "tpu", Operator: corev1.TolerationOpExists}}
		}},
	} {
		s.create(sandbox(name, func(b *v1alpha1.Sandbox) { test.edit(&b.Spec) }))
		if test.field == "" {
			s.phase(name, v1alpha1.SandboxReady)
		} else if c := s.refusedFor(name, v1alpha1.ReasonNotAllowed); !strings.Contains(c.Message, test.field) {
			t.Errorf("%s: %q, want %s named", name, c.Message, test.field)
		}
	}
	s.allow("{nonsense")
	s.create(sandbox("unread"))
	if c := s.refusedFor("unread", v1alpha1.ReasonNotAllowed); !strings.Contains(c.Message, v1alpha1.AnnotationAllowance) || !strings.Contains(c.Message, "jr2 up") {
		t.Errorf("%q, want the annotation and the way on", c.Message)
	}
}

// TestTheSchemaAndTheControllerJudgeAsPodSecurityDoes compares both with the admission of the API server, on random Sandboxes.
func TestTheSchemaAndTheControllerJudgeAsPodSecurityDoes(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"pod-security.kubernetes.io/enforce": "baseline"})
	r := rand.New(rand.NewPCG(70, 13))
	refused, admitted := 0, 0
	for n := range 300 {
		box := sandbox(fmt.Sprintf("random-%d", n), func(b *v1alpha1.Sandbox) { b.Namespace = s.namespace; randomRights(r, &b.Spec) })
		box.UID = "1" // the pod's owner
		pod := controller.Pod(box, nil)
		err := s.Create(t.Context(), pod, client.DryRunAll)
		security := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "violates PodSecurity")
		if err != nil && !security {
			continue // no pod at all, and Pod Security is not asked
		}
		schema := s.Create(t.Context(), box.DeepCopy(), client.DryRunAll)
		if (schema != nil) != security {
			t.Errorf("%d: the schema says %v, Pod Security %v", n, schema, err)
		}
		if ours := controller.BeyondBaseline(box); (len(ours) > 0) != security {
			t.Errorf("%d: the controller says %v, Pod Security %v", n, ours, err)
		}
		if security {
			refused++
		} else {
			admitted++
		}
	}
	if refused < 50 || admitted < 50 {
		t.Errorf("%d were refused and %d admitted: too few of one kind", refused, admitted)
	}
}

func randomRights(r *rand.Rand, spec *v1alpha1.SandboxSpec) {
	maybe := func(n int) bool { return r.IntN(n) == 0 }
	security := func() *rights {
		if maybe(2) {
			return nil
		}
		c := &rights{}
		if maybe(4) {
			c.Privileged = ptr.To(maybe(4))
			c.AllowPrivilegeEscalation = c.Privileged
		}
		if maybe(3) {
			c.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
			for range r.IntN(3) {
				of := []corev1.Capability{"CHOWN", "KILL", "SETUID", "NET_BIND_SERVICE", "SYS_CHROOT", "MKNOD", "NET_RAW", "SYS_PTRACE"}
				c.Capabilities.Add = append(c.Capabilities.Add, of[r.IntN(len(of))])
			}
		}
		if maybe(4) {
			types := []corev1.SeccompProfileType{"RuntimeDefault", "RuntimeDefault", "Unconfined"}
			c.SeccompProfile = &corev1.SeccompProfile{Type: types[r.IntN(3)]}
		}
		if maybe(5) {
			types := []corev1.AppArmorProfileType{"RuntimeDefault", "RuntimeDefault", "Unconfined"}
			c.AppArmorProfile = &corev1.AppArmorProfile{Type: types[r.IntN(3)]}
		}
		if maybe(5) {
			c.SELinuxOptions = &corev1.SELinuxOptions{Level: "s0", Type: []string{"", "container_t", "container_kvm_t", "spc_t"}[r.IntN(4)], User: []string{"", "", "", "root"}[r.IntN(4)]}
		}
		if maybe(6) {
			c.RunAsUser = ptr.To(int64(r.IntN(2)))
		}
		return c
	}
	one := func(name string) corev1.Container {
		c := corev1.Container{Name: name, Image: "registry.example.com/x:1", SecurityContext: security()}
		if maybe(4) {
			c.Ports = []corev1.ContainerPort{{ContainerPort: 9000 + int32(r.IntN(9)), Protocol: corev1.ProtocolTCP, HostPort: int32(r.IntN(2)) * 80}}
			if c.Ports[0].HostPort != 0 {
				c.Ports[0].HostPort = c.Ports[0].ContainerPort
			}
		}
		return c
	}
	spec.SecurityContext = security()
	for n := range r.IntN(2) {
		c := one(fmt.Sprintf("side-%d", n))
		if maybe(3) {
			c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1), Host: []string{"", "10.0.0.1"}[r.IntN(2)]}}}
		}
		if maybe(4) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(1), Host: []string{"", "10.0.0.1"}[r.IntN(2)]}}}
		}
		spec.Sidecars = append(spec.Sidecars, c)
	}
	for n := range r.IntN(2) {
		spec.InitContainers = append(spec.InitContainers, one(fmt.Sprintf("init-%d", n)))
	}
	if maybe(3) {
		sources := []corev1.VolumeSource{
			{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {Secret: &corev1.SecretVolumeSource{SecretName: "s"}}, {ConfigMap: &corev1.ConfigMapVolumeSource{}},
			{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}, {CSI: &corev1.CSIVolumeSource{Driver: "example.com"}},
		}
		sources[2].ConfigMap.Name = "c"
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "v", VolumeSource: sources[r.IntN(len(sources))]})
	}
	if maybe(5) {
		spec.SHMSize = ptr.To(resource.MustParse("64Mi"))
	}
}
