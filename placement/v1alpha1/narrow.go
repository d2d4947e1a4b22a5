package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// narrow adds to the schema of a Sandbox what its pod may not ask for, so that the API server refuses it by the name of the field. It is what
// the Pod Security level "baseline" refuses (https://kubernetes.io/docs/concepts/security/pod-security-standards/), and what would lend a Sandbox
// the rights of an account. The operator asks again before it makes a pod, and it bounds priority and placement by the Instance's configuration, which a schema can't know.
//
// The types are those of Kubernetes, on which no marker can be put; hence these rules of value alone, which the generator does not know.
func narrow(crd *apiextensionsv1.CustomResourceDefinition) error {
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		spec, ok := version.Schema.OpenAPIV3Schema.Properties["spec"]
		if !ok || spec.Properties["sidecars"].Items == nil {
			continue // of another kind
		}
		n := &narrowing{}
		n.container(&spec, "securityContext", "readinessProbe")
		for _, list := range []string{"sidecars", "initContainers"} {
			n.items(&spec, list, func(container *props) {
				n.container(container, "securityContext", "readinessProbe", "livenessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop")
				n.items(container, "ports", func(port *props) { n.at(port, "hostPort", func(s *props) { s.Maximum = new(float64) }) })
			})
		}
		n.items(&spec, "volumes", func(volume *props) {
			forbid(volume, "hostPath")
			n.at(volume, "projected", func(projected *props) {
				n.items(projected, "sources", func(source *props) { forbid(source, "serviceAccountToken") })
			})
		})
		if n.err != nil {
			return fmt.Errorf("%s: %w", crd.Name, n.err)
		}
		version.Schema.OpenAPIV3Schema.Properties["spec"] = spec
	}
	return nil
}

type props = apiextensionsv1.JSONSchemaProps

// A narrowing keeps the first place that the generated schema does not have: then the types have changed, and a rule would be lost.
type narrowing struct{ err error }

// container narrows what a container says of its rights, and the probes and hooks by which the node would call other hosts.
func (n *narrowing) container(container *props, security string, calls ...string) {
	n.at(container, security, func(s *props) {
		n.at(s, "privileged", func(s *props) { s.Enum = values(false) })
		n.at(s, "procMount", func(s *props) { s.Enum = values("Default") })
		n.at(s, "capabilities", func(s *props) {
			n.items(s, "add", func(s *props) { s.Enum = values(capabilities()...) })
		})
		n.at(s, "seccompProfile", func(s *props) { n.at(s, "type", func(s *props) { s.Enum = values("RuntimeDefault", "Localhost") }) })
		n.at(s, "appArmorProfile", func(s *props) { n.at(s, "type", func(s *props) { s.Enum = values("RuntimeDefault", "Localhost") }) })
		n.at(s, "seLinuxOptions", func(s *props) {
			n.at(s, "type", func(s *props) {
				s.Enum = values("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
			})
			for _, empty := range []string{"user", "role"} {
				n.at(s, empty, func(s *props) { s.MaxLength = new(int64) })
			}
		})
		n.at(s, "windowsOptions", func(s *props) { n.at(s, "hostProcess", func(s *props) { s.Enum = values(false) }) })
	})
	for _, call := range calls {
		n.path(container, call, func(s *props) {
			for _, way := range []string{"httpGet", "tcpSocket"} {
				n.at(s, way, func(s *props) { n.at(s, "host", func(s *props) { s.MaxLength = new(int64) }) })
			}
		})
	}
}

// capabilities are those that a Sandbox's container may add: those of the Pod Security level "baseline".
func capabilities() []any {
	return []any{
		"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
	}
}

// at changes a property of an object.
func (n *narrowing) at(of *props, name string, change func(*props)) {
	property, ok := of.Properties[name]
	if !ok {
		if n.err == nil {
			n.err = fmt.Errorf("the schema has no %s", name)
		}
		return
	}
	change(&property)
	of.Properties[name] = property
}

// path changes a property of a property.
func (n *narrowing) path(of *props, path string, change func(*props)) {
	if i := slices.Index([]byte(path), '.'); i >= 0 {
		n.at(of, path[:i], func(s *props) { n.path(s, path[i+1:], change) })
		return
	}
	n.at(of, path, change)
}

// items changes what each item of a list may be.
func (n *narrowing) items(of *props, name string, change func(*props)) {
	n.at(of, name, func(list *props) {
		if list.Items == nil || list.Items.Schema == nil {
			if n.err == nil {
				n.err = fmt.Errorf("%s is no list", name)
			}
			return
		}
		change(list.Items.Schema)
	})
}

func forbid(of *props, property string) { of.Not = &props{Required: []string{property}} }

func values(of ...any) []apiextensionsv1.JSON {
	var all []apiextensionsv1.JSON
	for _, value := range of {
		text, err := json.Marshal(value)
		if err != nil {
			continue // the values are texts and truths
		}
		all = append(all, apiextensionsv1.JSON{Raw: text})
	}
	return all
}
