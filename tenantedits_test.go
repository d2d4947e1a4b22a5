package jr2_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
	"jr2.dev/jr2/placement/v1alpha1"
)

// An editor is a tenant with the ClusterRole edit in a namespace, who writes what he may.
type editor struct {
	t         *testing.T
	random    *rand.Rand
	objects   dynamic.Interface
	namespace string
	loot      []loot // objects that are not his, with their true UIDs
	done      []string
	refused   int
}

// What an editor may write in his namespace.
var editable = []schema.GroupVersionResource{
	configMapKind, secretKind, claimKind, deploymentKind, sandboxKind, repoKind,
	{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "serviceaccounts"}, {Version: "v1", Resource: "pods"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "daemonsets"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	leaseKind,
}

var leaseKind = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// editorOf acts as a ServiceAccount.
func (w *world) editorOf(t *testing.T, namespace string, seed uint64, all []loot) *editor {
	t.Helper()
	cfg := rest.CopyConfig(w.Config())
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":editor",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}}
	objects, err := dynamic.NewForConfig(cfg)
	must(t, err)
	return &editor{t: t, random: rand.New(rand.NewPCG(seed, seed)), objects: objects, namespace: namespace, loot: all}
}

func pick[T any](e *editor, from []T) T { return from[e.random.IntN(len(from))] }

// did counts what the server took, and what it refused: an editor tries more than he may.
func (e *editor) did(what string, err error) {
	if err != nil {
		e.refused++
		return
	}
	e.done = append(e.done, what)
}

func (e *editor) ctx() context.Context { return e.t.Context() }

// manager is a name under which he writes: anybody may choose any.
func (e *editor) manager() string {
	return pick(e, []string{apply.DefaultFieldManager, apply.DefaultFieldManager, "jr2-mint", "before-first-apply", "kubectl-edit", "kube-controller-manager"})
}

// text is a value that nobody expects.
func (e *editor) text() string {
	return pick(e, []string{"", "x", "null", "{}", "[]", "{\"hash\":", "\x1b[2J\x1b[1;1H\r\nforged", "\u202eevil", strings.Repeat("A", 60_000), "../../" + e.namespace, "a b;rm -rf /", "-n"})
}

// set is the ID of a set: his own, another's, none.
func (e *editor) set() string {
	return pick(e, []string{e.namespace + "/jr2-instance", e.namespace + "/shared", "tenant-b/jr2-instance", "jr2-system/jr2-operator", "tenant-v/shared", e.text()})
}

func (e *editor) any() (schema.GroupVersionResource, *unstructured.Unstructured) {
	for range 20 {
		kind := pick(e, editable)
		list, err := e.objects.Resource(kind).Namespace(e.namespace).List(e.ctx(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			return kind, &list.Items[e.random.IntN(len(list.Items))]
		}
	}
	return configMapKind, nil
}

// edits are what he does in a round, each one thing. What only ends the admin's run early is left out of most rounds, where it would hide the rest.
func (e *editor) edits() []func() {
	all := []func(){
		e.forgesARecord, e.forgesARecord, e.forgesARecord, e.marks, e.marks, e.labels, e.owns, e.notes, e.annotates, e.pointer,
		e.looksAlike, e.looksAlike, e.looksAlike, e.deletes, e.lease, e.writes,
	}
	for _, ending := range []func(){e.breaksARecord, e.secrets, e.finalizes} {
		if e.random.IntN(3) == 0 {
			all = append(all, ending)
		}
	}
	return all
}

// listed is a record of something of others, with what a run would write beside it.
func (e *editor) listed() map[string]any {
	l := pick(e, e.loot)
	rec := map[string]any{"version": l.version, "kind": l.kind, "name": l.name}
	if l.group != "" {
		rec["group"] = l.group
	}
	if l.namespace != "" {
		rec["namespace"] = l.namespace
	}
	if e.random.IntN(3) > 0 {
		rec["uid"] = l.uid
	}
	for key, value := range map[string]any{"made": true, "want": e.text(), "entry": e.text(), "seen": e.text(), "keep": e.text()} {
		if e.random.IntN(3) == 0 {
			rec[key] = value
		}
	}
	if e.random.IntN(12) == 0 {
		rec["name"] = e.text()
	}
	return rec
}

// forgesARecord lists things of others in a record of a set, or makes one of a set that has none here.
func (e *editor) forgesARecord() {
	maps := e.objects.Resource(configMapKind).Namespace(e.namespace)
	name := apply.InventoryName(pick(e, []string{"jr2-instance", "shared", "jr2-operator", "jr2-namespace"}))
	file := map[string]any{"version": 1, "objects": []any{}}
	now, err := maps.Get(e.ctx(), name, metav1.GetOptions{})
	if err == nil {
		text, _, _ := unstructured.NestedString(now.Object, "data", "inventory.json") //nolint:errcheck // his own
		if e.random.IntN(4) > 0 {
			_ = json.Unmarshal([]byte(text), &file) //nolint:errcheck // it may be broken by now
		}
	} else {
		now = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name,
			"annotations": map[string]any{apply.SetAnnotation: e.namespace + "/" + strings.TrimPrefix(name, apply.InventoryName(""))}}}}
	}
	all, _ := file["objects"].([]any)
	for range 1 + e.random.IntN(2*len(e.loot)) {
		all = append(all, e.listed())
	}
	file["objects"] = all
	raw, merr := json.Marshal(file)
	must(e.t, merr)
	must(e.t, unstructured.SetNestedField(now.Object, string(raw), "data", "inventory.json"))
	options := metav1.UpdateOptions{FieldManager: e.manager()}
	if err != nil {
		_, err = maps.Create(e.ctx(), now, metav1.CreateOptions{FieldManager: options.FieldManager})
	} else {
		_, err = maps.Update(e.ctx(), now, options)
	}
	e.did("forges "+name, err)
}

// breaksARecord writes what is no record.
func (e *editor) breaksARecord() {
	name := apply.InventoryName(pick(e, []string{"jr2-instance", "shared"}))
	key := pick(e, []string{"reading.json", "release.json", "chunks.json", "inventory.json"})
	value := pick(e, []string{e.text(), `["` + name + `-0123456789"]`, `["kube-root-ca.crt"]`, `{"version":1,"places":[]}`, `{"number":7,"salt":"a","sum":"b"}`, strings.Repeat("[", 20_000)})
	e.patches(configMapKind, name, map[string]any{"data": map[string]any{key: value}})
}

func (e *editor) patches(kind schema.GroupVersionResource, name string, patch any) {
	raw, err := json.Marshal(patch)
	must(e.t, err)
	_, err = e.objects.Resource(kind).Namespace(e.namespace).Patch(e.ctx(), name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: e.manager()})
	e.did(fmt.Sprintf("patches %s %s", kind.Resource, name), err)
}

// marks puts the mark of a set on something of his namespace, by a server-side apply under the name of jr2.
func (e *editor) marks() {
	kind, o := e.any()
	if o == nil {
		return
	}
	body := map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": map[string]any{"name": o.GetName(),
		"annotations": map[string]any{apply.SetAnnotation: e.set(), apply.MadeAnnotation: e.set()}}}
	raw, err := json.Marshal(body)
	must(e.t, err)
	force := true
	_, err = e.objects.Resource(kind).Namespace(e.namespace).Patch(e.ctx(), o.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: e.manager(), Force: &force})
	e.did("marks "+kind.Resource+" "+o.GetName(), err)
}

func (e *editor) labels() {
	kind, o := e.any()
	if o == nil {
		return
	}
	e.patches(kind, o.GetName(), map[string]any{"metadata": map[string]any{"labels": map[string]any{
		names.LabelInstance:  pick(e, []any{"my-instance", "other", nil}),
		names.LabelManagedBy: pick(e, []any{names.ManagedBy, "Helm", nil}),
		names.LabelAssembly:  pick(e, []any{"0123456789ab", nil}),
	}}})
}

// owns makes something of others the owner of something of his.
func (e *editor) owns() {
	kind, o := e.any()
	l := pick(e, e.loot)
	if o == nil {
		return
	}
	e.patches(kind, o.GetName(), map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{
		"apiVersion": schema.GroupVersion{Group: l.group, Version: l.version}.String(), "kind": l.kind, "name": l.name, "uid": l.uid,
		"controller": e.random.IntN(2) == 0, "blockOwnerDeletion": e.random.IntN(2) == 0}}}})
}

// notes writes the server's notes of who set what himself.
func (e *editor) notes() {
	kind, o := e.any()
	if o == nil {
		return
	}
	field := map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:" + apply.SetAnnotation: map[string]any{}}, "f:labels": map[string]any{"f:" + names.LabelInstance: map[string]any{}}}}
	entry := map[string]any{"manager": e.manager(), "operation": pick(e, []string{"Apply", "Update"}), "apiVersion": o.GetAPIVersion(), "fieldsType": "FieldsV1", "fieldsV1": field,
		"time": time.Now().UTC().Format(time.RFC3339)}
	e.patches(kind, o.GetName(), map[string]any{"metadata": map[string]any{"managedFields": pick(e, []any{[]any{entry}, []any{map[string]any{}}})}})
}

// annotates changes what a converge notes of itself, and anything else.
func (e *editor) annotates() {
	images := pick(e, []string{e.text(), `{"sandbox":{"default":"r.test/evil:1"}}`, `{"orchestrator":"r.test/evil:1","harness":7}`})
	switch e.random.IntN(3) {
	case 0:
		e.patches(deploymentKind, names.Orchestrator, map[string]any{"metadata": map[string]any{"annotations": map[string]any{names.AnnotationImages: images, names.AnnotationReplaced: e.text()}}})
	case 1:
		e.patches(configMapKind, names.ImagesConfig, map[string]any{"data": map[string]any{names.ImagesKey: images}})
	default:
		if kind, o := e.any(); o != nil {
			key := pick(e, []string{"argocd.argoproj.io/sync-options", "helm.sh/resource-policy", "kubectl.kubernetes.io/last-applied-configuration", names.AnnotationTouched, "jr2.dev/release", "jr2.dev/want"})
			e.patches(kind, o.GetName(), map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: pick(e, []string{e.text(), "Prune=false", "keep", "Replace=true"})}}})
		}
	}
}

func (e *editor) pointer() {
	record := fmt.Sprintf(`{"hash":%q,"chunks":%d,"size":%d,"sha256":%q,"workflows":[%q]}`, pick(e, []string{"0123456789ab", "\x1b[2J12345678", "../../../../"}),
		pick(e, []int{1, 1 << 30, -1}), pick(e, []int{10, 1 << 30}), strings.Repeat("a", 64), "x")
	e.patches(configMapKind, names.AssemblyPointer, map[string]any{"data": map[string]any{
		pick(e, []string{"current", "previous", "format", "theirs"}): pick(e, []string{record, e.text()})}})
}

// looksAlike makes an object with the name of something of others, or of the Instance's, in his namespace.
func (e *editor) looksAlike() {
	kind := pick(e, editable)
	l := pick(e, e.loot)
	name := pick(e, []string{l.name, names.InstanceSecret, names.HeldCA, names.ImagesConfig, names.Orchestrator, names.OperatorDeployment, names.InstanceHarnessClaim,
		names.AssemblyPointer + "-0123456789ab-0", apply.InventoryName("jr2-instance") + "-0123456789", "jr2-git-01234567", "theirs"})
	kinds := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "persistentvolumeclaims": "PersistentVolumeClaim", "deployments": "Deployment", "sandboxes": "Sandbox",
		"repos": "Repo", "services": "Service", "serviceaccounts": "ServiceAccount", "pods": "Pod", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet", "replicasets": "ReplicaSet",
		"jobs": "Job", "networkpolicies": "NetworkPolicy", "leases": "Lease"}
	o := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kinds[kind.Resource], "metadata": map[string]any{"name": name,
		"labels":      map[string]any{names.LabelInstance: "my-instance", names.LabelManagedBy: names.ManagedBy, v1alpha1.LabelRun: "x"},
		"annotations": map[string]any{apply.SetAnnotation: e.set(), names.AnnotationIdentity: "git.example.test/x"}}}
	pod := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "r.test/theirs:1"}}}
	labelled := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "theirs"}}, "spec": pod}
	switch kind.Resource {
	case "pods":
		o["spec"] = pod
	case "jobs":
		o["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"restartPolicy": "Never", "containers": pod["containers"]}}}
	case "deployments", "statefulsets", "daemonsets", "replicasets":
		o["spec"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "theirs"}}, "template": labelled}
	case "services":
		o["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	case "persistentvolumeclaims":
		o["spec"] = map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "none", "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	case "sandboxes":
		o["spec"] = map[string]any{"image": "r.test/theirs:1"}
	case "repos":
		o["spec"] = map[string]any{"url": "https://git.example.test/x"}
	case "networkpolicies":
		o["spec"] = map[string]any{"podSelector": map[string]any{}}
	}
	_, err := e.objects.Resource(kind).Namespace(e.namespace).Create(e.ctx(), &unstructured.Unstructured{Object: o}, metav1.CreateOptions{FieldManager: e.manager()})
	e.did("makes "+kind.Resource+" "+name, err)
}

func (e *editor) deletes() {
	kind, o := e.any()
	if o == nil {
		return
	}
	propagation := pick(e, []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan})
	err := e.objects.Resource(kind).Namespace(e.namespace).Delete(e.ctx(), o.GetName(), metav1.DeleteOptions{PropagationPolicy: &propagation})
	e.did("deletes "+kind.Resource+" "+o.GetName(), err)
}

// secrets changes the values from which tokens and certificates derive.
func (e *editor) secrets() {
	name := pick(e, []string{names.InstanceSecret, names.HeldCA, names.HeldTLS, names.HeldSecrets})
	e.patches(secretKind, name, map[string]any{"data": map[string]any{
		pick(e, []string{names.KeySigningKey, names.KeyInstanceToken, "ca.crt", "theirs"}): pick(e, []any{nil, "", "eA==", "LS0tLS1CRUdJTg=="})}})
}

// lease writes into a lock that nobody holds, or that somebody held: a test of its own shows that one which somebody seems to hold is taken at last.
func (e *editor) lease() {
	name := pick(e, []string{"jr2-converge", "jr2-apply-shared"})
	e.patches(leaseKind, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"x": e.text()}}, "spec": map[string]any{
		"holderIdentity": "", "leaseDurationSeconds": pick(e, []int{1, 1 << 30}), "renewTime": pick(e, []string{"2001-01-01T00:00:00.000000Z", "2101-01-01T00:00:00.000000Z"}),
		"leaseTransitions": pick(e, []int{0, 1<<31 - 1})}})
}

// finalizes holds something, now and then.
func (e *editor) finalizes() {
	if kind, o := e.any(); o != nil {
		e.patches(kind, o.GetName(), map[string]any{"metadata": map[string]any{"finalizers": []any{pick(e, []string{"theirs.test/hold", "kubernetes.io/pvc-protection", "orphan"})}}})
	}
}

// writes changes the content of something.
func (e *editor) writes() {
	kind, o := e.any()
	if o == nil {
		return
	}
	switch kind.Resource {
	case "configmaps":
		e.patches(kind, o.GetName(), map[string]any{"data": map[string]any{pick(e, []string{"theirs", "harness.json", "current"}): e.text()}})
	case "secrets":
		e.patches(kind, o.GetName(), map[string]any{"stringData": map[string]any{"theirs": e.text()}})
	case "deployments", "statefulsets":
		e.patches(kind, o.GetName(), map[string]any{"spec": map[string]any{"replicas": e.random.IntN(3)}})
	case "services":
		e.patches(kind, o.GetName(), map[string]any{"spec": map[string]any{"selector": map[string]any{"app": "theirs"}}})
	}
}
