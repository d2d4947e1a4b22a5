package preflight_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"jr2.dev/jr2/internal/devcluster"
	"jr2.dev/jr2/preflight"
)

// witnessed is a client whose requests the API server's audit log tells.
func witnessed(t *testing.T, cluster *devcluster.Cluster) (kubernetes.Interface, *devcluster.Witness) {
	t.Helper()
	config := cluster.Config()
	witness, err := cluster.Witness(config)
	must(t, err)
	return clientFor(t, config), witness
}

func storing(events []devcluster.AuditEvent) []devcluster.AuditEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e devcluster.AuditEvent) bool { return !e.Stores() })
}

// wrote are the requests of a witness that could have stored something, and those of everybody.
func wrote(t *testing.T, witness *devcluster.Witness) (ours, all []devcluster.AuditEvent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ours, others, err := witness.Events(ctx)
	must(t, err)
	return storing(ours), append(storing(ours), storing(others)...)
}

// announced fails the test for each write that a check does not announce. What it does is make pods, and what they read, in a namespace; remove
// pods; and, where the namespace is not given, make and remove that.
func announced(t *testing.T, writes []devcluster.AuditEvent, may map[string]string, home string) {
	t.Helper()
	for _, e := range writes {
		there := strings.HasPrefix(e.Namespace, home)
		if e.Resource == "namespaces" {
			there = e.Name == "" || strings.HasPrefix(e.Name, home)
		}
		if !there || !slices.Contains(strings.Fields(may[e.Resource]), e.Verb) || e.Group+e.Subresource != "" {
			t.Errorf("a check announces no such thing: %s", e)
		}
	}
}

// left are the objects that were made by these requests and that nobody removed, as far as the log goes. The server gives some their names: of
// those, as many have to be removed as were made.
func left(writes, all []devcluster.AuditEvent) []string {
	removed := map[string][]string{}
	for _, e := range all {
		key := e.Resource + " in " + e.Namespace
		if e.Resource == "namespaces" {
			key = "namespaces"
		}
		if e.Verb == "delete" && e.Code == 200 && !slices.Contains(removed[key], e.Name) {
			removed[key] = append(removed[key], e.Name)
		}
	}
	nameless := map[string]int{}
	var stay []string
	for _, e := range writes {
		key := e.Resource + " in " + e.Namespace
		if e.Resource == "namespaces" {
			key = "namespaces"
		}
		switch {
		case e.Verb != "create" || e.Code != 201 || slices.Contains(removed["namespaces"], e.Namespace) && e.Resource != "namespaces":
		case e.Name == "":
			nameless[key]++
			if nameless[key] > len(removed[key]) {
				stay = append(stay, key)
			}
		case !slices.Contains(removed[key], e.Name):
			stay = append(stay, key+": "+e.Name)
		}
	}
	return stay
}

// What checks that run pods write, by kind, as their documentation says.
func modelProbesWrite() map[string]string {
	return map[string]string{"pods": "create delete", "configmaps": "create", "secrets": "create"}
}

func nodeChecksWrite(namespace string) map[string]string {
	may := map[string]string{"pods": "create delete"}
	if namespace == "" {
		may["namespaces"] = "create delete"
	}
	return may
}

// testModelsAudited: probes write what they announce, and take it back; the cluster removes what went with the pods.
func testModelsAudited(t *testing.T, w checkWorld) {
	probes := w.probes(t, "model-audited")
	client, witness := witnessed(t, w.cluster)
	probes.Client = client.CoreV1()
	w.runsProbes(t, probes.Namespace)
	server := startModelServer(t)
	_, err := probes.Models(t.Context(), []preflight.Model{own(server.URL, "good"), own(server.URL, "no-tools"), own(server.URL, "denied")})
	must(t, err)
	var ours, all []devcluster.AuditEvent
	eventually(t, "all that was made is removed", func() bool {
		ours, all = wrote(t, witness)
		return len(left(ours, all)) == 0
	})
	announced(t, ours, modelProbesWrite(), probes.Namespace)
	if len(ours) != 3*4 { // each a pod, a ConfigMap and a Secret, and the pod removed
		t.Errorf("got %v", ours)
	}
}

// testNodesAudited: so do node checks. One after the other, because those in a namespace of their own remove what any of them left.
func testNodesAudited(t *testing.T, w checkWorld) {
	t.Run("to the end", func(t *testing.T) { testNodesToTheEnd(t, w) })
	t.Run("killed", func(t *testing.T) { testNodesKilled(t, w) })
}

// testNodesToTheEnd asks from a namespace that is given and from their own.
func testNodesToTheEnd(t *testing.T, w checkWorld) {
	given := w.namespace(t, "nodes-audited", "privileged")
	for _, namespace := range []string{given, ""} {
		client, witness := witnessed(t, w.cluster)
		w.kubelet(t, namespace)
		checks := preflight.NodeChecks{Client: client.CoreV1(), Namespace: namespace}
		_, err := checks.Privileged(t.Context())
		must(t, err)
		privileged, _ := wrote(t, witness)
		if namespace != "" && len(privileged) > 0 {
			t.Errorf("a question by dry run wrote %v", privileged)
		}
		_, err = checks.Modules(t.Context(), w.nodes(t, "n1"), "jr2_no_such_module")
		must(t, err)
		ours, all := wrote(t, witness)
		home := namespace
		if namespace == "" {
			home = "jr2-node-check-"
		}
		announced(t, ours, nodeChecksWrite(namespace), home)
		if stay := left(ours, all); len(stay) > 0 || !slices.ContainsFunc(ours, func(e devcluster.AuditEvent) bool { return e.Resource == "pods" }) {
			t.Errorf("%q: left are %q of %v", namespace, stay, ours)
		}
	}
}

// TestTheProofOfProbesCanFail: a write too many, in another namespace or of another kind, and what nobody removed.
func TestTheProofOfProbesCanFail(t *testing.T) {
	t.Parallel()
	made := devcluster.AuditEvent{Verb: "create", Resource: "pods", Namespace: "a", Name: "p", Code: 201}
	gone := devcluster.AuditEvent{Verb: "delete", Resource: "pods", Namespace: "a", Name: "p", Code: 200}
	nameless, space, spaceGone, failed, elsewhere, other := made, made, gone, gone, made, gone
	nameless.Name, failed.Code, elsewhere.Namespace, other.Name = "", 404, "b", "q"
	space.Resource, space.Namespace, space.Name, spaceGone.Resource, spaceGone.Namespace, spaceGone.Name = "namespaces", "", "", "namespaces", "", "a"
	type events = []devcluster.AuditEvent
	for name, tt := range map[string]struct {
		writes events
		left   int
	}{
		"nothing": {}, "removed": {events{made, gone}, 0}, "left": {events{made}, 1}, "not removed": {events{made, failed}, 1}, "another removed": {events{made, other}, 1},
		"in another namespace": {events{elsewhere, gone}, 1}, "one of two without a name": {events{nameless, nameless, gone}, 1},
		"with its namespace": {events{space, made, nameless, spaceGone}, 0}, "the namespace is left": {events{space, made, gone}, 1},
	} {
		if got := left(tt.writes, tt.writes); len(got) != tt.left {
			t.Errorf("%s: %q are left", name, got)
		}
	}
}
