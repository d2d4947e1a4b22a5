package jr2_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2"
	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/names"
)

// lists adds objects to the record of a set, as an editor of its namespace could, with their UIDs or without.
func (w *world) lists(t *testing.T, namespace, set string, records ...map[string]any) {
	t.Helper()
	maps := w.client.CoreV1().ConfigMaps(namespace)
	head, err := maps.Get(t.Context(), apply.InventoryName(set), metav1.GetOptions{})
	must(t, err)
	var file map[string]any
	must(t, json.Unmarshal([]byte(head.Data["inventory.json"]), &file))
	for _, rec := range records {
		file["objects"] = append(file["objects"].([]any), rec)
	}
	raw, err := json.Marshal(file)
	must(t, err)
	head.Data["inventory.json"] = string(raw)
	_, err = maps.Update(t.Context(), head, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	must(t, err)
}

// TestARecordOfAnInstanceDeletesNothingOfOthers: an editor of the Instance's namespace lists a neighbour's and the cluster's objects in its record, with
// their true UIDs and without. up and down delete none of them, and tell each as kept, with the reason.
func TestARecordOfAnInstanceDeletesNothingOfOthers(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	w.home(t, "recorded-v", "")
	theirs := w.stranger(t).movesIn(t, "recorded-v")
	role, err := w.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "recorded-v"}}, metav1.CreateOptions{})
	must(t, err)
	home, err := w.client.CoreV1().Namespaces().Get(t.Context(), "recorded-v", metav1.GetOptions{})
	must(t, err)
	rec := func(group, kind, namespace, name string, uid types.UID) map[string]any {
		return map[string]any{"group": group, "version": "v1", "kind": kind, "namespace": namespace, "name": name, "uid": string(uid), "made": true}
	}
	for _, how := range []string{"with their UIDs", "without UIDs"} {
		namespace := strings.ReplaceAll("recorded "+strings.ToLower(how), " ", "-")
		must(t, w.up(t, dir, into(namespace)).err)
		records := []map[string]any{
			rec("apps", "Deployment", "recorded-v", "theirs", theirs.uids[deploymentKind]), rec("", "Secret", "recorded-v", "theirs", theirs.uids[secretKind]),
			rec("", "PersistentVolumeClaim", "recorded-v", "theirs", theirs.uids[claimKind]), rec("rbac.authorization.k8s.io", "ClusterRole", "", "recorded-v", role.UID),
			rec("", "Namespace", "", "recorded-v", home.UID), rec("stranger.test", "Lake", "recorded-v", "theirs", theirs.uids[lakeKind]),
		}
		if how == "without UIDs" {
			for _, r := range records {
				delete(r, "uid")
			}
		}
		w.lists(t, namespace, "jr2-instance", records...)
		again := w.up(t, dir, into(namespace))
		must(t, again.err)
		kept := 0
		for _, o := range again.result.Objects {
			if o.Action == apply.Kept && strings.Contains(o.Why, "does not carry the mark") {
				kept++
			}
		}
		if kept != len(records) {
			t.Errorf("%s: %d of %d are told as kept:\n%s", how, kept, len(records), again.lines)
		}
		w.lists(t, namespace, "jr2-instance", records...)
		must(t, w.down(t, namespace).err)
		theirs.areThere(t)
		w.stays(t, "recorded-v")
		if now, err := w.client.RbacV1().ClusterRoles().Get(t.Context(), "recorded-v", metav1.GetOptions{}); err != nil || now.UID != role.UID {
			t.Errorf("%s: the ClusterRole: %v", how, err)
		}
	}
}

// TestStrangersAreSeenBeforeTheFirstWrite: in a namespace that is to be adopted, objects of others under the Instance's names end an up before the
// namespace is labelled; a plan says all the rest too.
func TestStrangersAreSeenBeforeTheFirstWrite(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	dir := plainFolder(t)
	s := w.stranger(t)
	for object, kind := range map[string]string{names.InstanceSecret: "Secret", names.ImagesConfig: "ConfigMap", names.AssemblyPointer: "ConfigMap"} {
		namespace := "before-" + object
		w.home(t, namespace, "")
		resource := map[string]int{"Secret": 0, "ConfigMap": 1}[kind]
		s.makes(t, []schema.GroupVersionResource{secretKind, configMapKind}[resource], namespace, fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": %q}}`, kind, object))
		told := w.up(t, dir, into(namespace), adopted)
		var unowned *apply.UnownedError
		if !errors.As(told.err, &unowned) || unowned.Ref.Name != object {
			t.Errorf("%s: %v", object, told.err)
		}
		home, err := w.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		if must(t, err); home.Labels[names.LabelInstance] != "" {
			t.Errorf("%s: the namespace was labelled", object)
		}
		plan, err := jr2.MakePlan(t.Context(), jr2.Options{Dir: dir, Config: w.Config(), Context: contextName, Namespace: namespace, AdoptNamespace: true,
			Env: map[string]string{}, RegistryTransport: loopbackOnly{http.DefaultTransport}})
		if err != nil || !errors.As(plan.Err(), &unowned) || len(plan.Layers) < 3 {
			t.Errorf("%s: the plan: %v, %v, %d layers", object, err, plan.Err(), len(plan.Layers))
		}
	}
}

// TestDownAllGoesOnAfterADownThatLeftTheNamespace, and its record of the operator takes nothing of anybody else along.
func TestDownAllGoesOnAfterADownThatLeftTheNamespace(t *testing.T) {
	t.Parallel()
	w := loneWorld(t, node("a"))
	dir := plainFolder(t)
	must(t, w.up(t, dir, into("left-a")).err)
	must(t, w.up(t, dir, into("left-b")).err)
	theirs := w.stranger(t).movesIn(t, "left-a")
	must(t, w.down(t, "left-a").err)
	w.leftNothing(t, "left-a")
	copied, err := w.client.CoreV1().ConfigMaps("left-a").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "copied",
		Labels: map[string]string{names.LabelManagedBy: names.ManagedBy}, Annotations: map[string]string{apply.SetAnnotation: "jr2-system/jr2-operator"}}}, metav1.CreateOptions{FieldManager: "kubectl-create"})
	must(t, err)
	rec := func(group, kind, name string) map[string]any {
		return map[string]any{"group": group, "version": "v1", "kind": kind, "namespace": "left-b", "name": name}
	}
	w.lists(t, names.OperatorNamespace, "jr2-operator", rec("apps", "Deployment", names.Orchestrator), rec("", "Secret", names.InstanceSecret), // of a neighbour, with the label of jr2
		map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": "left-a", "name": copied.Name, "uid": string(copied.UID)})
	told := w.down(t, "left-a", func(o *jr2.DownOptions) { o.All = true })
	must(t, told.err)
	w.noOperator(t)
	theirs.areThere(t)
	if told.result.Gone || !strings.Contains(strings.Join(told.result.LeftInPlace, " "), "namespace left-a") {
		t.Errorf("told %+v", told.result)
	}
	if _, err := w.client.AppsV1().Deployments("left-b").Get(t.Context(), names.Orchestrator, metav1.GetOptions{}); err != nil {
		t.Errorf("the neighbour's Orchestrator: %v", err)
	}
	for namespace, name := range map[string]string{"left-b": names.InstanceSecret} {
		if _, err := w.client.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s/%s: %v", namespace, name, err)
		}
	}
	if _, err := w.client.CoreV1().ConfigMaps("left-a").Get(t.Context(), copied.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("the copy is gone")
	}
	must(t, w.up(t, dir, into("left-b")).err)
	must(t, w.down(t, "left-b").err)
}
