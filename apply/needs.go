package apply

// needsOf lists what must be there when an object is created, or when its pods are, because without it they are
// refused, taken away again or never made: the account of a token, the account and the classes of a pod, the class of a
// claim, the role of a binding, the policy of a binding. Versions are left out, as in Ref.key.
func needsOf(o order) []Ref {
	body := o.body.Object
	var all []Ref
	need := func(group, kind, namespace string, name any) {
		if n := text(name); n != "" {
			all = append(all, Ref{Group: group, Kind: kind, Namespace: namespace, Name: n})
		}
	}
	switch {
	case o.isToken():
		need("", "ServiceAccount", o.ref.Namespace, o.body.GetAnnotations()[accountName])
	case o.ref.Group == "" && o.ref.Kind == "PersistentVolumeClaim":
		need("storage.k8s.io", "StorageClass", "", dig(body, "spec", "storageClassName"))
		need("storage.k8s.io", "VolumeAttributesClass", "", dig(body, "spec", "volumeAttributesClassName"))
	case o.ref.Group == "rbac.authorization.k8s.io" && dig(body, "roleRef", "kind") == "Role":
		need(o.ref.Group, "Role", o.ref.Namespace, dig(body, "roleRef", "name"))
	case o.ref.Group == "rbac.authorization.k8s.io":
		need(o.ref.Group, "ClusterRole", "", dig(body, "roleRef", "name"))
	case o.ref.Group == "admissionregistration.k8s.io" && o.ref.Kind == "ValidatingAdmissionPolicyBinding":
		need(o.ref.Group, "ValidatingAdmissionPolicy", "", dig(body, "spec", "policyName"))
	case o.ref.Group == "admissionregistration.k8s.io" && o.ref.Kind == "MutatingAdmissionPolicyBinding":
		need(o.ref.Group, "MutatingAdmissionPolicy", "", dig(body, "spec", "policyName"))
	}
	if path := podSpecPath(o.body); path != nil {
		spec, _ := dig(body, path...).(map[string]any)
		account := spec["serviceAccountName"]
		if text(account) == "" {
			account = spec["serviceAccount"] // its name before Kubernetes 1.0, which the server still reads
		}
		need("", "ServiceAccount", o.ref.Namespace, account)
		need("scheduling.k8s.io", "PriorityClass", "", spec["priorityClassName"])
		need("node.k8s.io", "RuntimeClass", "", spec["runtimeClassName"])
	}
	return all
}
