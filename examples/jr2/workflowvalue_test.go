package main

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2"
	"jr2.dev/jr2/config"
	"jr2.dev/jr2/placement"
	"jr2.dev/jr2/placement/provision"
)

// testValue runs an Instance that is a Go value, with two Workspaces, in a namespace that was converged by somebody else.
func (s *scene) testValue(t *testing.T) {
	for _, object := range []any{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "two", Labels: map[string]string{"jr2.dev/instance": "two"}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "jr2-images"}, Data: map[string]string{"images.json": `{"harness":"example.com/harness:1","custodian":"example.com/envoy:1"}`}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "jr2-instance"}, Data: map[string][]byte{"JR2_SIGNING_KEY": []byte("key")}},
	} {
		s.put(t, "two", object)
	}
	until(t, func() bool {
		_, err := s.client.CoreV1().ServiceAccounts("two").Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	large := int64(1) << 50
	instance := &config.Instance{Name: "two", KitVersion: "0.3.0", Workflows: []config.Workflow{
		{Name: "both", Workspaces: []config.Workspace{{Path: []string{}}, {Path: []string{"F-1"}}}},
		{Name: "one-too-large", Workspaces: []config.Workspace{{Path: []string{}, Size: config.Limits{Memory: &large}}, {Path: []string{"F-1"}}}},
		{Name: "not-delivered", Workspaces: []config.Workspace{{Image: "file://" + s.dir}}},
	}}
	for _, workflow := range instance.Workflows {
		for i := range workflow.Workspaces {
			workflow.Workspaces[i].Repos = []config.RepoSlot{{Slot: "app", State: config.SlotBound, URL: "https://git.example.test/team/app.git"}}
		}
	}
	var mutex sync.Mutex
	told := &strings.Builder{}
	run := func(workflow string, edit func(*jr2.RunOptions)) (*jr2.RunResult, error) {
		told.Reset()
		opts := jr2.RunOptions{Instance: instance, Workflow: workflow, Config: s.cluster.Config(), Context: "shared", Events: func(e jr2.Event) {
			mutex.Lock()
			defer mutex.Unlock()
			jr2.Narrate(told)(e)
		}}
		if edit != nil {
			edit(&opts)
		}
		return jr2.Run(t.Context(), opts)
	}
	result, err := run("both", nil)
	must(t, err)
	if len(result.Workspaces) != 2 || result.Workspaces[1].Child != "F-1" || result.Status != jr2.RunReady || !strings.Contains(told.String(), `  → active "F-1/placing"`+"\n") {
		t.Errorf("%+v\n%s", result, told)
	}
	if runs, err := jr2.Runs(t.Context(), jr2.RunsOptions{Instance: instance, Config: s.cluster.Config()}); err != nil || len(runs) != 1 || len(runs[0].Workspaces) != 2 {
		t.Errorf("%+v, %v", runs, err)
	}

	// One that is given up takes the other along, as far as that never ran.
	result, err = run("one-too-large", func(o *jr2.RunOptions) { o.Refuse = func(provision.Wait) bool { return true } })
	var lost *provision.LostError
	if !errors.As(err, &lost) || lost.Child != "" || !strings.Contains(told.String(), "  placing: waits for a node — ") || result.Code != "sandbox_lost" {
		t.Errorf("%+v, %v\n%s", result, err, told)
	}
	if i := slices.IndexFunc(result.Workspaces, func(w provision.Workspace) bool { return w.Child == "" }); i >= 0 {
		t.Errorf("the one that never ran: %+v", result.Workspaces[i])
	}
	_, err = run("one-too-large", func(o *jr2.RunOptions) { o.Sizes = placement.SizeRange{Max: placement.Share{Memory: 1 << 40}} })
	if !errors.As(err, new(*placement.SizeCapError)) {
		t.Errorf("over the maximum: %v", err)
	}
	if _, err = run("not-delivered", nil); !errors.As(err, new(*jr2.NotConvergedError)) || !strings.Contains(err.Error(), "no image of "+s.dir+", as it is now, was delivered") {
		t.Errorf("an image that nobody delivered: %v", err)
	}
}

func (s *scene) put(t *testing.T, namespace string, object any) {
	t.Helper()
	var err error
	switch o := object.(type) {
	case *corev1.Namespace:
		_, err = s.client.CoreV1().Namespaces().Create(t.Context(), o, metav1.CreateOptions{})
	case *corev1.ConfigMap:
		_, err = s.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), o, metav1.CreateOptions{})
	case *corev1.Secret:
		_, err = s.client.CoreV1().Secrets(namespace).Create(t.Context(), o, metav1.CreateOptions{})
	}
	must(t, err)
}
