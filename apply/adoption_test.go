package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/apply"
)

// What is there and of no set is adopted only when that is asked for: nothing at all is written before. The plan says who made it and what would
// change.
func TestAnObjectOfNobodyIsAdoptedOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	docs := map[string]string{
		"a map":          conf("theirs", "ours"),
		"a Deployment":   deployment("theirs"),
		"an account":     account("theirs"),
		"a cluster role": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: adopt-SHORT, labels: {a: b}}",
	}
	for name, doc := range docs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			doc := strings.ReplaceAll(doc, "SHORT", ns[len(ns)-5:])
			theirs := set(t, ns, strings.ReplaceAll(doc, `"ours"`, `"theirs"`))
			mustApply(t, theirs, apply.Options{Shared: true, FieldManager: "helm"})
			s := set(t, ns, join(doc, conf("ours", "x")))
			ref := apply.RefOf(theirs.Objects[0])
			p := mustPlan(t, s, apply.Options{})
			_, err := apply.Apply(t.Context(), config(t), s, apply.Options{})
			for _, err := range []error{err, p.Err()} {
				var unowned *apply.UnownedError
				if !errors.As(err, &unowned) || unowned.Ref != ref || !slices.Equal(unowned.Managers, []string{"helm"}) {
					t.Fatalf("got %v", err)
				}
			}
			step, _ := p.Step(ref)
			if step.Intent != apply.WillConflict || len(step.Fields)+len(step.Conflicts) == 0 {
				t.Errorf("planned: %+v", step)
			}
			maps, err := typed(t).CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
			if err != nil || slices.ContainsFunc(maps.Items, func(m corev1.ConfigMap) bool { return m.Name == "ours" || strings.HasPrefix(m.Name, "jr2-inventory") }) {
				t.Errorf("something was written before: %v, %d maps", err, len(maps.Items))
			}
			adopt := apply.Options{Adopt: true, Prune: true, Conflicts: apply.Conflicts{TakeFrom: []string{"helm"}}}
			if step, _ := mustPlan(t, s, adopt).Step(ref); step.Intent != apply.WillAdopt {
				t.Errorf("planned with adoption: %+v", step)
			}
			if out := mustApply(t, s, adopt); out.Did(ref) != apply.Configured {
				t.Errorf("adopted: %+v", out.Objects)
			}
			if out := mustApply(t, s, apply.Options{Prune: true}); out.Changed() != 0 {
				t.Errorf("the next run needs no adoption: %+v", out.Objects)
			}
		})
	}
}

// A mark that somebody copied is no claim: the server notes who wrote it.
func TestACopiedMarkIsNoMark(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "a", "stays"), apply.Options{})
	maps := typed(t).CoreV1().ConfigMaps(ns)
	ours, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "copy", Annotations: ours.Annotations}, Data: map[string]string{"theirs": "x"}}
	if theirs, err = maps.Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	// Asked for by name it is refused, and in a record it is kept.
	if _, err := apply.Apply(t.Context(), config(t), mapsSet(t, ns, "a", "stays", "copy"), apply.Options{}); !errors.As(err, new(*apply.UnownedError)) {
		t.Errorf("got %v", err)
	}
	addRecord(t, ns, "app", `{"version":"v1","kind":"ConfigMap","namespace":"`+ns+`","name":"copy","uid":"`+string(theirs.UID)+`"}`)
	out := mustApply(t, mapsSet(t, ns, "stays"), apply.Options{Prune: true})
	if out.Did(configMap(ns, "a")) != apply.Pruned || out.Did(configMap(ns, "copy")) != apply.Kept {
		t.Errorf("%+v", out.Objects)
	}
	if _, err := maps.Get(t.Context(), "copy", metav1.GetOptions{}); err != nil {
		t.Errorf("a stranger's object is gone: %v", err)
	}
}

// addRecord edits the record of a set as somebody may who may edit ConfigMaps of its namespace.
func addRecord(t *testing.T, ns, name, record string) {
	t.Helper()
	maps := typed(t).CoreV1().ConfigMaps(ns)
	inventory, err := maps.Get(t.Context(), apply.InventoryName(name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(inventory.Data["inventory.json"], `"objects":[`, `"objects":[`+record+`,`, 1)
	if text == inventory.Data["inventory.json"] {
		t.Fatal("the record has another form by now")
	}
	inventory.Data["inventory.json"] = text
	if _, err := maps.Update(t.Context(), inventory, metav1.UpdateOptions{FieldManager: "stranger"}); err != nil {
		t.Fatal(err)
	}
}

// Field case F69, as far as a prune goes: a record names objects that the set never made, with their true UIDs or without. All of them stay.
func TestARecordOfWhatTheSetNeverMadeDeletesNothing(t *testing.T) {
	t.Parallel()
	ns, victim := newNamespace(t, nil), newNamespace(t, nil)
	mustApply(t, mapsSet(t, ns, "stays"), apply.Options{})
	core, rbac := typed(t).CoreV1(), typed(t).RbacV1()
	theirs, err := core.ConfigMaps(victim).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role, err := rbac.ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "f69-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []string{"", `,"uid":"UID"`} {
		for _, row := range []struct{ record, uid string }{
			{`{"version":"v1","kind":"ConfigMap","namespace":"` + victim + `","name":"theirs"`, string(theirs.UID)},
			{`{"group":"rbac.authorization.k8s.io","version":"v1","kind":"ClusterRole","name":"` + role.Name + `"`, string(role.UID)},
			{`{"group":"rbac.authorization.k8s.io","version":"v1","kind":"ClusterRole","namespace":"` + ns + `","name":"` + role.Name + `"`, string(role.UID)},
			{`{"version":"v1","kind":"Namespace","made":true,"name":"` + victim + `"`, ""},
		} {
			addRecord(t, ns, "app", row.record+strings.ReplaceAll(uid, "UID", row.uid)+"}")
		}
		opts := apply.Options{Prune: true, PruneData: []apply.Ref{{Kind: "Namespace", Name: victim}}}
		if p := mustPlan(t, mapsSet(t, ns, "stays"), opts); p.Changes() != 0 || p.Count(apply.WillKeep) != 3 {
			t.Errorf("planned:\n%s", p)
		}
		out := mustApply(t, mapsSet(t, ns, "stays"), opts)
		if out.Count(apply.Pruned) != 0 || out.Count(apply.Kept) != 3 {
			t.Errorf("%+v", out.Objects)
		}
	}
	if _, err := apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{}); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"map":       second(core.ConfigMaps(victim).Get(t.Context(), "theirs", metav1.GetOptions{})),
		"role":      second(rbac.ClusterRoles().Get(t.Context(), role.Name, metav1.GetOptions{})),
		"namespace": second(core.Namespaces().Get(t.Context(), victim, metav1.GetOptions{})),
	} {
		if err != nil {
			t.Errorf("the %s is gone: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The values of a Secret are replaced by an adoption only when whoever set them is named, also where nobody knows any more who that was.
func TestAnAdoptionReplacesNoValueOfASecretUnasked(t *testing.T) {
	t.Parallel()
	const ours = "apiVersion: v1\nkind: Secret\nmetadata: {name: words, namespace: NS}\nstringData: {word: ours, more: x}"
	for name, theirs := range map[string]struct {
		manager string
		forget  bool
	}{"by a tool": {"helm", false}, "by kubectl apply": {"kubectl-client-side-apply", false}, "by nobody known": {"helm", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t, nil)
			secrets := typed(t).CoreV1().Secrets(ns)
			_, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "words"}, Data: map[string][]byte{"word": []byte("theirs"), "key": []byte("k")}},
				metav1.CreateOptions{FieldManager: theirs.manager})
			if err == nil && theirs.forget {
				_, err = secrets.Patch(t.Context(), "words", types.MergePatchType, []byte(`{"metadata":{"managedFields":[{}]}}`), metav1.PatchOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			s, adopt := set(t, ns, ours), apply.Options{Adopt: true}
			_, runErr := apply.Apply(t.Context(), config(t), s, adopt)
			for _, err := range []error{mustPlan(t, s, adopt).Err(), runErr} {
				var conflict *apply.ConflictError
				if !errors.As(err, &conflict) || conflict.Conflicts[0].Field != ".data.word" || strings.Contains(err.Error(), "theirs") {
					t.Errorf("got %v", err)
				}
			}
			now, err := secrets.Get(t.Context(), "words", metav1.GetOptions{})
			if err != nil || string(now.Data["word"]) != "theirs" || len(now.Data) != 2 {
				t.Fatalf("it was written: %v, %d keys", err, len(now.Data))
			}
			if theirs.forget {
				return
			}
			adopt.Conflicts.TakeFrom = []string{theirs.manager}
			mustApply(t, s, adopt)
			if now, err = secrets.Get(t.Context(), "words", metav1.GetOptions{}); err != nil || string(now.Data["word"]) != "ours" || string(now.Data["key"]) != "k" {
				t.Errorf("with its manager named: %v, %q", err, now.Data["word"])
			}
		})
	}
}

// Labels by which a set knows its own from before there were marks adopt without a question; one label too few does not.
func TestKinIsTheSetsOwn(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	kin := map[string]string{"app.kubernetes.io/managed-by": "ours", "example.com/instance": "one"}
	labels := map[string]map[string]string{"all": kin, "some": {"app.kubernetes.io/managed-by": "ours"}}
	for name, labels := range labels {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if _, err := typed(t).CoreV1().ConfigMaps(ns).Create(t.Context(), made, metav1.CreateOptions{FieldManager: "older"}); err != nil {
			t.Fatal(err)
		}
	}
	if out := mustApply(t, set(t, ns, conf("all", "x")), apply.Options{Kin: kin}); out.Did(configMap(ns, "all")) != apply.Configured {
		t.Errorf("%+v", out.Objects)
	}
	if _, err := apply.Apply(t.Context(), config(t), set(t, ns, conf("some", "x")), apply.Options{Kin: kin}); !errors.As(err, new(*apply.UnownedError)) {
		t.Errorf("got %v", err)
	}
}

// A ConfigMap of the record's name that is somebody else's is neither believed nor overwritten.
func TestSomebodyElsesMapOfTheRecordsNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	maps := typed(t).CoreV1().ConfigMaps(ns)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: apply.InventoryName("app")}, Data: map[string]string{"theirs": "x"}}
	if _, err := maps.Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		second(apply.Apply(t.Context(), config(t), mapsSet(t, ns, "a"), apply.Options{Prune: true})),
		second(apply.MakePlan(t.Context(), config(t), mapsSet(t, ns, "a"), apply.Options{Prune: true})),
		second(apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{})),
	} {
		var inventory *apply.InventoryError
		if !errors.As(err, &inventory) || !inventory.Foreign || !strings.Contains(err.Error(), "kubectl-create") {
			t.Errorf("got %v", err)
		}
	}
	now, err := maps.Get(t.Context(), theirs.Name, metav1.GetOptions{})
	if err != nil || len(now.Data) != 1 || now.Data["theirs"] != "x" {
		t.Errorf("%v, %v", err, now.Data)
	}
}

// A Namespace that leaves the set is deleted only when it is named, when the set made it, and when nothing else is in it.
func TestANamespaceGoesOnlyWhenItIsTheSetsAlone(t *testing.T) {
	t.Parallel()
	home := newNamespace(t, nil)
	short := home[len(home)-5:]
	namespace := func(name string) string { return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}" }
	in := func(name string) string {
		return strings.Replace(conf("inside", "x"), "namespace: NS", "namespace: "+name, 1)
	}
	alone, shared, joined := "alone-"+short, "shared-"+short, "joined-"+short
	core := typed(t).CoreV1()
	if _, err := core.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: joined}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustApply(t, set(t, home, join(namespace(alone), in(alone), namespace(shared), in(shared), namespace(joined), in(joined))), apply.Options{})
	if _, err := core.Secrets(shared).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	opts := apply.Options{Prune: true}
	refs := map[string]apply.Ref{}
	for _, name := range []string{alone, shared, joined} {
		refs[name] = apply.Ref{Version: "v1", Kind: "Namespace", Name: name}
		opts.PruneData = append(opts.PruneData, refs[name])
	}
	p, out := mustPlan(t, set(t, home, conf("stays", "x")), opts), mustApply(t, set(t, home, conf("stays", "x")), opts)
	if step, planned := p.Step(refs[joined]); planned || out.Did(refs[joined]) != "" { // the set never took it in
		t.Errorf("%s: %+v, %q", joined, step, out.Did(refs[joined]))
	}
	if now, err := core.Namespaces().Get(t.Context(), joined, metav1.GetOptions{}); err != nil || now.DeletionTimestamp != nil || len(now.Annotations) > 0 {
		t.Errorf("%s: %v, %v", joined, err, now.Annotations)
	}
	for name, want := range map[string]apply.Action{alone: apply.Pruned, shared: apply.Kept} {
		step, _ := p.Step(refs[name])
		if planned := map[apply.Intent]apply.Action{apply.WillPrune: apply.Pruned, apply.WillKeep: apply.Kept}[step.Intent]; planned != want || out.Did(refs[name]) != want {
			t.Errorf("%s: planned %q (%s), was %q, want %q", name, step.Intent, step.Why, out.Did(refs[name]), want)
		}
	}
	if step, _ := p.Step(refs[shared]); !strings.Contains(step.Why, "Secret "+shared+"/theirs (kubectl-create)") {
		t.Errorf("why it stays: %s", step.Why)
	}
	if _, err := core.Secrets(shared).Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("a stranger's Secret is gone: %v", err)
	}
}

// Withdraw removes a set whole, data and record too, and nothing else.
func TestWithdrawRemovesASetAndNothingElse(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t, nil)
	mustApply(t, set(t, ns, stack), apply.Options{})
	mustApply(t, mustSet(t, "other", ns, conf("others", "x")), apply.Options{})
	core := typed(t).CoreV1()
	if _, err := core.Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	dry, err := apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{DryRun: true})
	if err != nil || dry.Count(apply.Pruned) == 0 {
		t.Errorf("a dry run: %v, %+v", err, dry.Objects)
	}
	out, err := apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{})
	if err != nil || out.Count(apply.Pruned)+out.Count(apply.Terminating) != dry.Count(apply.Pruned) {
		t.Errorf("%v, %+v, a dry run %+v", err, out.Objects, dry.Objects)
	}
	maps, err := core.ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, m := range maps.Items {
		left = append(left, m.Name)
	}
	if slices.Sort(left); !slices.Equal(left, []string{apply.InventoryName("other"), "kube-root-ca.crt", "others"}) {
		t.Errorf("left: %v", left)
	}
	if _, err := core.Secrets(ns).Get(t.Context(), "theirs", metav1.GetOptions{}); err != nil {
		t.Errorf("a stranger's Secret is gone: %v", err)
	}
	if out, err := apply.Withdraw(t.Context(), config(t), "app", ns, apply.Options{}); err != nil || len(out.Objects) != 0 {
		t.Errorf("the second time: %v, %+v", err, out.Objects)
	}
}

// Somebody makes an object between the look of an apply and its write. Fields that differ are a conflict; where none does, the write is undone, and
// the object is theirs as they made it.
func TestAnObjectMadeMeanwhileIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, theirs := range map[string]map[string]string{"with other fields": {"theirs": "x"}, "with the same": {"value": "x"}, "with another value": {"value": "theirs"}} {
		for n := range 4 {
			planned, takes := n%2 > 0, n > 1
			t.Run(fmt.Sprintf("%s, planned: %t, takes fields: %t", name, planned, takes), func(t *testing.T) {
				t.Parallel()
				ns := newNamespace(t, nil)
				maps := typed(t).CoreV1().ConfigMaps(ns)
				var once sync.Once
				cfg := through(t, func(next http.RoundTripper, r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/configmaps/raced") && r.URL.Query().Get("dryRun") == "" {
						once.Do(func() {
							made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "raced", Labels: map[string]string{"theirs": "yes"}}, Data: theirs}
							if _, err := maps.Create(t.Context(), made, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
								t.Error(err)
							}
						})
					}
					return next.RoundTrip(r)
				})
				s := set(t, ns, conf("raced", "x"))
				apply1 := func(opts apply.Options) error {
					if planned {
						return second(mustPlan(t, s, opts).Apply(t.Context(), cfg))
					}
					return second(apply.Apply(t.Context(), cfg, s, opts))
				}
				var opts apply.Options
				if takes {
					opts.Conflicts.TakeFrom = []string{"kubectl-create"}
				}
				if err := apply1(opts); !errors.As(err, new(*apply.UnownedError)) {
					t.Fatalf("got %v", err)
				}
				now, err := maps.Get(t.Context(), "raced", metav1.GetOptions{})
				if err != nil || !equality.Semantic.DeepEqual(now.Data, theirs) || len(now.Annotations) != 0 || len(now.ManagedFields) != 1 {
					t.Errorf("%v, data %v, annotations %v, managers %v", err, now.Data, now.Annotations, now.ManagedFields)
				}
				none, err := apply.NewSet("app", ns)
				if err != nil {
					t.Fatal(err)
				}
				if out := mustApply(t, none, apply.Options{Prune: true}); out.Count(apply.Pruned) != 0 {
					t.Errorf("pruned: %+v", out.Objects)
				}
			})
		}
	}
}
