package devcluster_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"jr2.dev/jr2/internal/devcluster"
)

// TestAudit: a bare cluster with an audit log, in which a witness finds what its own clients asked, whole and apart from others.
func TestAudit(t *testing.T) {
	t.Parallel()
	cluster := devcluster.ForTest(t, devcluster.Options{Bare: true, Audit: true})
	config := cluster.Config()
	witness, err := cluster.Witness(config)
	if err != nil {
		t.Fatal(err)
	}
	config.UserAgent = "watched"
	ours, others := clientFor(t, config), clientFor(t, cluster.Config())
	mark, err := cluster.AuditMark()
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	const many = 40
	for i := range many {
		group.Go(func() error {
			mine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("mine-%d", i)}}
			_, err := ours.CoreV1().ConfigMaps("default").Create(t.Context(), mine, metav1.CreateOptions{})
			return err
		})
		group.Go(func() error {
			_, err := others.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	seen, strange, err := witness.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stores := slices.DeleteFunc(slices.Clone(seen), func(e devcluster.AuditEvent) bool { return !e.Stores() })
	if len(seen) != many || len(stores) != many {
		t.Errorf("%d requests of %d, %d that store: %v", len(seen), many, len(stores), seen)
	}
	if e := seen[0]; e.Verb != "create" || e.Resource != "configmaps" || e.Namespace != "default" || e.User != "devcluster-admin" || e.UserAgent != "watched" || e.Code != 201 {
		t.Errorf("got %+v", e)
	}
	count := 0
	for _, e := range strange {
		if e.Resource == "secrets" && e.Verb == "list" {
			count++
		}
	}
	if count != many {
		t.Errorf("%d requests of others, want %d", count, many)
	}
	all, end, err := cluster.AuditSince(t.Context(), mark)
	if err != nil || len(all) < 2*many {
		t.Errorf("%d requests since the mark, %v", len(all), err)
	}
	if again, _, err := cluster.AuditSince(t.Context(), end); err != nil || slices.ContainsFunc(again, func(e devcluster.AuditEvent) bool { return e.Resource == "secrets" && e.Verb == "list" }) {
		t.Errorf("after the end: %v, %v", again, err)
	}
	testAuditKinds(t, cluster)
	testAuditDeletes(t, cluster)
	testBare(t, cluster)
}

// testAuditKinds makes one request of each kind.
func testAuditKinds(t *testing.T, cluster *devcluster.Cluster) {
	config := cluster.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	witness, err := cluster.Witness(config)
	if err != nil {
		t.Fatal(err)
	}
	nobody := clientFor(t, config)
	config.Impersonate = rest.ImpersonationConfig{}
	admin := clientFor(t, config)
	maps := admin.CoreV1().ConfigMaps("default")
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}}}
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	_, dryErr := maps.Create(t.Context(), made, dry)
	_, reviewErr := admin.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	_, versionErr := admin.Discovery().ServerVersion()
	deleteErr := maps.Delete(t.Context(), "mine-0", metav1.DeleteOptions{})
	if err := errors.Join(dryErr, reviewErr, versionErr, deleteErr); err != nil {
		t.Fatal(err)
	}
	if _, err := nobody.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err == nil {
		t.Fatal("nobody may make a Secret")
	}
	events, _, err := witness.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s %s by %s: %d, stores: %t", e.Verb, e.Resource, e.User, e.Code, e.Stores()))
	}
	want := []string{
		"watch configmaps by devcluster-admin: 200, stores: false",
		"create configmaps by devcluster-admin: 201, stores: false",
		"create selfsubjectaccessreviews by devcluster-admin: 201, stores: false",
		"get  by devcluster-admin: 200, stores: false",
		"delete configmaps by devcluster-admin: 200, stores: true",
		"create secrets by nobody: 403, stores: true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// testAuditDeletes: the log tells which deletes name the UID that they mean, in either encoding.
func testAuditDeletes(t *testing.T, cluster *devcluster.Cluster) {
	config := cluster.Config()
	witness, err := cluster.Witness(config)
	if err != nil {
		t.Fatal(err)
	}
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	secrets, overProtobuf := clientFor(t, config).CoreV1().Secrets("default"), clientFor(t, binary).CoreV1().Secrets("default")
	var uids []types.UID
	for _, name := range []string{"d0", "d1", "d2", "d3"} {
		made, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		uids = append(uids, made.UID)
	}
	exactly := func(i int) metav1.DeleteOptions {
		return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uids[i]}}
	}
	if err := errors.Join(
		secrets.Delete(t.Context(), "d0", exactly(0)),
		overProtobuf.Delete(t.Context(), "d1", exactly(1)),
		secrets.Delete(t.Context(), "d2", metav1.DeleteOptions{}),
		secrets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=d3"}),
	); err != nil {
		t.Fatal(err)
	}
	events, _, err := witness.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events[len(uids):] {
		got = append(got, fmt.Sprintf("%s %s of %q", e.Verb, e.Name, e.PreconditionUID))
	}
	want := []string{fmt.Sprintf("delete d0 of %q", uids[0]), fmt.Sprintf("delete d1 of %q", uids[1]), `delete d2 of ""`, `deletecollection  of ""`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// testBare: objects stay as they are written.
func testBare(t *testing.T, cluster *devcluster.Cluster) {
	core := clientFor(t, cluster.Config()).CoreV1()
	node, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}, metav1.CreateOptions{})
	if err != nil || len(node.Spec.Taints) > 0 || len(node.Status.Conditions) != 1 {
		t.Errorf("got %+v, %v", node, err)
	}
	spec := podSpec("a").Spec
	spec.NodeName = "n"
	if _, err := core.Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

func TestAuditEventStores(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		event  devcluster.AuditEvent
		stores bool
	}{
		{devcluster.AuditEvent{Verb: "list", Resource: "pods"}, false},
		{devcluster.AuditEvent{Verb: "patch", Resource: "pods", URI: "/api/v1/namespaces/a/pods/b?dryRun=All&fieldManager=x"}, false},
		{devcluster.AuditEvent{Verb: "patch", Resource: "pods", URI: "/api/v1/namespaces/a/pods/b?fieldManager=dryRun%3DAll"}, true},
		{devcluster.AuditEvent{Verb: "create", Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, false},
		{devcluster.AuditEvent{Verb: "delete", Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, true},
		{devcluster.AuditEvent{Verb: "create", Group: "example.com", Resource: "selfsubjectreviews"}, true},
		{devcluster.AuditEvent{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}, true},
		{devcluster.AuditEvent{Verb: "get", Resource: "pods", Subresource: "log"}, false},
		{devcluster.AuditEvent{Verb: "get", Resource: "pods", Subresource: "exec"}, true},
		{devcluster.AuditEvent{Verb: "post", URI: "/shutdown"}, true},
	} {
		if tt.event.Stores() != tt.stores {
			t.Errorf("%+v: stores %t", tt.event, !tt.stores)
		}
	}
}

func TestWitnessWithoutAudit(t *testing.T) {
	t.Parallel()
	if _, err := (&devcluster.Cluster{}).Witness(&rest.Config{}); !errors.Is(err, devcluster.ErrNoAudit) {
		t.Errorf("got %v", err)
	}
}
