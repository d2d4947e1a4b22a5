package preflight_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// TestChecksWriteNothing: every other check of this package against one server, by its audit log.
func TestChecksWriteNothing(t *testing.T) {
	t.Parallel()
	cluster := sharedCluster(t)
	admin := clientFor(t, cluster.Config())
	makeNamespace(t, admin, "looked-at", map[string]string{enforce: "restricted"})
	client, witness := witnessed(t, cluster)
	bad := "{serviceAccountName: none, priorityClassName: none, imagePullSecrets: [{name: none}], containers: [{name: a, image: a}]}"
	set := manifests(t, namespaceYAML("looked-at", enforce+": baseline")+namespaceYAML("to-come", "")+workloadIn("looked-at", "Deployment", "a", "", bad)+
		workloadIn("looked-at", "StatefulSet", "b", "serviceName: s", bad)+workloadIn("to-come", "DaemonSet", "c", "", bad)+workloadIn("default", "Deployment", "d", "replicas: 3", bad))
	facts, err := preflight.ReadSetFacts(t.Context(), client)
	must(t, err)
	facts.Images = registry
	if found := preflight.Set(t.Context(), set, facts); len(found) < 5 {
		t.Errorf("the checks found %v", found)
	}
	_, err = preflight.PodLevelResources(t.Context(), client.CoreV1().Pods("looked-at"), "dev", "v1.36.1")
	must(t, err)
	_, err = preflight.PrivilegedPods(t.Context(), client.CoreV1().Pods("looked-at"), "looked-at")
	must(t, err)
	needs := []preflight.Need{{Right: preflight.Right{Verb: "create", Resource: "pods", Namespace: "looked-at"}, For: "a test"}}
	ana, err := cluster.ConfigFor("ana")
	must(t, err)
	hers, err := cluster.Witness(ana)
	must(t, err)
	if found, err := preflight.Rights(t.Context(), clientFor(t, ana).AuthorizationV1(), "ana", needs, nil); err != nil || len(found) != 1 {
		t.Errorf("got %v, %v", found, err)
	}
	for _, witness := range []*devcluster.Witness{witness, hers} {
		writes, _ := wrote(t, witness)
		for _, e := range writes {
			t.Errorf("a check wrote: %s", e)
		}
		all, _, err := witness.Events(t.Context())
		must(t, err)
		if len(all) < 3 {
			t.Errorf("the log has %v", all)
		}
	}
	stays, err := admin.CoreV1().Pods("looked-at").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(stays.Items) > 0 {
		t.Errorf("%d pods are there", len(stays.Items))
	}
}
