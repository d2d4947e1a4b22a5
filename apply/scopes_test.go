package apply_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"jr2.dev/jr2/apply"
)

// clusterCRD defines a kind without namespaces.
func clusterCRD(group, kind string) string {
	return strings.Replace(crd(group, kind), "scope: Namespaced", "scope: Cluster", 1)
}

// A clusterScoped is an object whose kind has no namespaces, in a manifest that names one all the same.
type clusterScoped struct {
	doc      string // NAME, NS and GROUP stand for names of the test; the line with the namespace is INNS
	resource schema.GroupVersionResource
	ground   string // is applied with it
}

func clusterScopedKinds() map[string]clusterScoped {
	resource := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	return map[string]clusterScoped{
		"a cluster role":                    {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NAMEINNS}", resource("rbac.authorization.k8s.io", "clusterroles"), ""},
		"a priority class":                  {"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: NAMEINNS}\nvalue: 7", resource("scheduling.k8s.io", "priorityclasses"), ""},
		"a storage class":                   {"apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: NAMEINNS}\nprovisioner: example.com/none", resource("storage.k8s.io", "storageclasses"), ""},
		"a volume, which holds data":        {"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: NAMEINNS}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/none}}", resource("", "persistentvolumes"), ""},
		"a kind that the set itself brings": {"apiVersion: GROUP/v1\nkind: Tenant\nmetadata: {name: NAMEINNS}", resource("GROUP", "tenants"), clusterCRD("GROUP", "Tenant")},
	}
}

// Field case F31: the scope of the kind says what an object is. Its manifest gets or loses the line with a namespace, and it stays the same object:
// nothing is pruned, made or changed, in the plan as in the run.
func TestANamespaceThatAKindDoesNotHaveIsNoPartOfAnIdentity(t *testing.T) {
	t.Parallel()
	for name, kind := range clusterScopedKinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			group := strings.NewReplacer("GROUP", ns+".example.com")
			kind.doc, kind.ground, kind.resource.Group = group.Replace(kind.doc), group.Replace(kind.ground), group.Replace(kind.resource.Group)
			object := "f31-" + ns[len(ns)-5:]
			release := func(inns string) *apply.Set {
				doc := strings.NewReplacer("NAME", object, "INNS", inns).Replace(kind.doc)
				if kind.ground != "" {
					doc = join(kind.ground, doc)
				}
				return set(t, ns, join(doc, conf("conf", "x")))
			}
			client, err := dynamic.NewForConfig(config(t))
			if err != nil {
				t.Fatal(err)
			}
			uid := func() string {
				t.Helper()
				live, err := client.Resource(kind.resource).Get(t.Context(), object, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return string(live.GetUID())
			}
			opts := apply.Options{Prune: true}
			mustApply(t, release(", namespace: NS"), opts)
			first := uid()
			for _, inns := range []string{"", ", namespace: elsewhere", ", namespace: NS", ""} {
				if p := mustPlan(t, release(inns), opts); p.Changes() != 0 || p.Err() != nil {
					t.Errorf("with %q the plan says\n%s", inns, p)
				}
				if out := mustApply(t, release(inns), opts); out.Changed() != 0 || len(out.Objects) != len(release(inns).Objects) {
					t.Errorf("with %q: %+v", inns, out.Objects)
				}
				if uid() != first {
					t.Fatalf("with %q it is another object", inns)
				}
			}
		})
	}
}

// One object in two places of the set is refused, though the texts name different namespaces.
func TestOneClusterScopedObjectInTwoPlacesIsRefused(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	role := func(namespace, verb string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: f31-twice, namespace: " + namespace + "}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [" + verb + "]}]"
	}
	dir := tree(t, map[string]string{"a.yaml": role("a", "get"), "b.yaml": role("b", "list")})
	s, err := apply.Read("app", ns, apply.Directory(dir))
	if err != nil {
		t.Fatal(err)
	}
	_, planErr := apply.MakePlan(t.Context(), config(t), s, apply.Options{})
	_, runErr := apply.Apply(t.Context(), config(t), s, apply.Options{})
	for _, err := range []error{planErr, runErr} {
		var problems *apply.SetError
		if !errors.As(err, &problems) || len(problems.Problems) != 1 || problems.Problems[0].Path != "metadata.namespace" ||
			!strings.Contains(err.Error(), "a.yaml:1") || !strings.Contains(err.Error(), "b.yaml:1") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := typed(t).RbacV1().ClusterRoles().Get(t.Context(), "f31-twice", metav1.GetOptions{}); apply.Classify(err) != apply.ClassNotFound {
		t.Errorf("it was made: %v", err)
	}
}

// A record that an older run wrote names the object by the text of its manifest, with a namespace.
func TestARecordUnderAnOldIdentityIsReadRightly(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	doc := strings.ReplaceAll("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: f31-NAME}", "NAME", ns[len(ns)-5:])
	s := set(t, ns, doc)
	opts := apply.Options{Prune: true}
	mustApply(t, s, opts)
	aged := func() {
		t.Helper()
		maps := typed(t).CoreV1().ConfigMaps(ns)
		record, err := maps.Get(t.Context(), apply.InventoryName("app"), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(record.Data["inventory.json"], `"kind":"ClusterRole",`, `"kind":"ClusterRole","namespace":"ops",`, 1)
		if text == record.Data["inventory.json"] {
			t.Fatal("the record has another form by now")
		}
		record.Data["inventory.json"] = text
		if _, err := maps.Update(t.Context(), record, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	aged()
	if out := mustApply(t, s, opts); out.Changed() != 0 || len(out.Objects) != 1 {
		t.Errorf("still in the set: %+v", out.Objects)
	}
	aged()
	out := mustApply(t, set(t, ns, conf("other", "x")), opts)
	if out.Count(apply.Pruned) != 1 {
		t.Errorf("it left the set: %+v", out.Objects)
	}
	if _, err := typed(t).RbacV1().ClusterRoles().Get(t.Context(), s.Objects[0].GetName(), metav1.GetOptions{}); apply.Classify(err) != apply.ClassNotFound {
		t.Errorf("it is there still: %v", err)
	}
}

// An object that two API groups serve, such as an Event, is one object by its UID: when the set asks for it in the other group, it does not leave.
func TestWhatTheSetHoldsUnderAnotherGroupIsNotPruned(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	const event = `apiVersion: v1
kind: Event
metadata: {name: told, namespace: NS}
involvedObject: {kind: ConfigMap, name: x, namespace: NS}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingComponent: example.com/test
reportingInstance: test
action: Test
reason: Test
type: Normal`
	const moved = `apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: told, namespace: NS}
regarding: {kind: ConfigMap, name: x, namespace: NS}
eventTime: "2026-01-01T00:00:00.000000Z"
reportingController: example.com/test
reportingInstance: test
action: Test
reason: Test
type: Normal`
	mustApply(t, set(t, ns, event), apply.Options{Prune: true})
	s := set(t, ns, moved)
	if p := mustPlan(t, s, apply.Options{Prune: true}); p.Count(apply.WillPrune) != 0 {
		t.Errorf("the plan:\n%s", p)
	}
	if out := mustApply(t, s, apply.Options{Prune: true}); out.Count(apply.Pruned) != 0 {
		t.Errorf("%+v", out.Objects)
	}
	if _, err := typed(t).CoreV1().Events(ns).Get(t.Context(), "told", metav1.GetOptions{}); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// Objects that a program makes have the same rule, and so does the name of data that may be pruned.
func TestTypedObjectsAndNamedDataGoByScopeToo(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	name := "f31-go-" + ns[len(ns)-5:]
	of := func(namespace string) *apply.Set {
		s, err := apply.NewSet("app", ns, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf", Namespace: ns}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	mustApply(t, of("ops"), apply.Options{Prune: true})
	if out := mustApply(t, of(""), apply.Options{Prune: true}); out.Changed() != 0 {
		t.Errorf("%+v", out.Objects)
	}
	volume := strings.ReplaceAll(clusterScopedKinds()["a volume, which holds data"].doc, "NAMEINNS", name)
	mustApply(t, set(t, ns, join(volume, conf("conf", "x"))), apply.Options{})
	named := apply.Ref{Version: "v1", Kind: "PersistentVolume", Namespace: ns, Name: name}
	if out := mustApply(t, set(t, ns, conf("conf", "x")), apply.Options{Prune: true, PruneData: []apply.Ref{named}}); out.Count(apply.Kept) != 0 {
		t.Errorf("%+v", out.Objects)
	}
}

// A kustomization puts its namespace on objects of kinds that it does not know, also where those have none. It is taken out again here, and nothing
// moves when the kustomization loses the line.
func TestANamespaceOfAKustomizationIsNoPartOfAnIdentity(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	group := ns + ".example.com"
	files := func(namespace string) map[string]string {
		return map[string]string{
			"kustomization.yaml": namespace + "resources: [kind.yaml, tenant.yaml, conf.yaml]\n",
			"kind.yaml":          strings.Replace(clusterCRD(group, "Tenant"), "{n: ", `{"n": `, 1), // n is a boolean to who reads YAML as kubectl does
			"tenant.yaml":        "apiVersion: " + group + "/v1\nkind: Tenant\nmetadata: {name: one}\n",
			"conf.yaml":          strings.ReplaceAll(conf("conf", "x"), "NS", ns),
		}
	}
	read := func(namespace string) *apply.Set {
		s, err := apply.Read("app", ns, apply.Directory(tree(t, files(namespace))))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	opts := apply.Options{Prune: true}
	with := read("namespace: " + ns + "\n")
	if !slices.ContainsFunc(with.Objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Tenant" && o.GetNamespace() == ns }) {
		t.Fatal("the kustomization puts no namespace on the object, so this test shows nothing")
	}
	mustApply(t, with, opts)
	for _, namespace := range []string{"", "namespace: " + ns + "\n"} {
		s := read(namespace)
		if p := mustPlan(t, s, opts); p.Changes() != 0 {
			t.Errorf("with %q the plan says\n%s", namespace, p)
		}
		if out := mustApply(t, s, opts); out.Changed() != 0 || out.Count(apply.Kept) != 0 {
			t.Errorf("with %q: %+v", namespace, out.Objects)
		}
	}
}
