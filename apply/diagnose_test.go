package apply

import (
	"strings"
	"testing"
)

func TestDiagnose(t *testing.T) {
	pod := func(c ContainerEvidence, log ...string) Evidence {
		return Evidence{Pods: []PodEvidence{{Name: "web-0", Phase: "Running", Node: "n1", Arch: "arm64", Containers: []ContainerEvidence{c}, Log: log, LogOf: c.Name}}}
	}
	refused := func(message string) Evidence {
		return Evidence{Owners: []EventEvidence{{Type: "Warning", Reason: "FailedCreate", Message: message, Object: "ReplicaSet web-1"}}}
	}
	for _, tt := range []struct {
		name string
		in   Evidence
		want string // the name of the one diagnosis, and texts in it
		says []string
	}{
		{"format in the log", pod(ContainerEvidence{Name: "c", State: "CrashLoopBackOff", Image: "reg.example/app:abc-linux-amd64"}, "exec /app: exec format error"), DiagnosedPlatform,
			[]string{"reg.example/app:abc-linux-amd64", "its tag names linux/amd64", "node n1 is arm64", "--force", "`platforms`"}},
		{"format in the last exit", pod(ContainerEvidence{Name: "c", State: "CrashLoopBackOff", Image: "app:1", Last: "StartError (exit code 128): exec format error"}), DiagnosedPlatform, []string{"names no platform"}},
		{"pull from a registry", pod(ContainerEvidence{Name: "c", State: "ImagePullBackOff", Image: "localhost/app:1"}), DiagnosedImagePull, []string{"it resolves to localhost.", "credentials"}},
		{"pull of a bare ref", pod(ContainerEvidence{Name: "c", State: "ErrImagePull", Image: "app:1"}), DiagnosedImagePull, []string{"Docker Hub", "not delivered", "--force"}},
		{"pull of a ref with a port but no slash", pod(ContainerEvidence{Name: "c", State: "ErrImagePull", Image: "app.x:5000"}), DiagnosedImagePull, []string{"Docker Hub"}},
		{"pull from the hub", pod(ContainerEvidence{Name: "c", State: "ErrImagePull", Image: "team/app:1"}), DiagnosedImagePull, []string{"Docker Hub", "credentials"}},
		{"crash with a log", pod(ContainerEvidence{Name: "c", State: "CrashLoopBackOff"}, "panic: no"), DiagnosedCrashLoop, []string{"end of its log"}},
		{"crash without", pod(ContainerEvidence{Name: "c", State: "CrashLoopBackOff"}), DiagnosedCrashLoop, []string{"--previous"}},
		{"config", pod(ContainerEvidence{Name: "c", State: "CreateContainerConfigError", Message: `secret "jr2-instance" not found`}), DiagnosedConfig, []string{`Secret "jr2-instance"`}},
		{"config map", pod(ContainerEvidence{Name: "c", State: "CreateContainerConfigError", Message: `configmap "x" not found`}), DiagnosedConfig, []string{`ConfigMap "x"`}},
		{"config, no name", pod(ContainerEvidence{Name: "c", State: "CreateContainerConfigError", Message: `couldn't find key k`}), DiagnosedConfig, nil},
		{"quota, not yet", refused(`Error creating: pods "web-1-x" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1`), DiagnosedQuota, []string{"q is full now"}},
		{"quota, unstated", refused(`Error creating: pods "x" is forbidden: failed quota: q: must specify limits.cpu for: app`), DiagnosedQuota, []string{"requests or limits"}},
		{"webhook", refused(`Error creating: Internal error occurred: failed calling webhook "w.example.io": failed to call webhook: connection refused`), DiagnosedWebhook, []string{"w.example.io"}},
		{"nothing known", refused("Created pod: web-1-x"), "", nil},
		{"ready", pod(ContainerEvidence{Name: "c", State: "ready", Ready: true}), "", nil},
	} {
		got := diagnose(tt.in)
		if tt.want == "" {
			if len(got) != 0 {
				t.Errorf("%s: %+v", tt.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Name != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
			continue
		}
		for _, text := range tt.says {
			if !strings.Contains(got[0].Text, text) {
				t.Errorf("%s: %q is not in %q", tt.name, text, got[0].Text)
			}
		}
	}
}

func TestRolloutErrorText(t *testing.T) {
	e := RolloutError{Workload: Workload{Kind: "Deployment", Namespace: "demo", Name: "web"}, Verdict: "timed out after 3m0s: 0 of 1 updated replicas are available", Evidence: Evidence{
		Pods: []PodEvidence{{Name: "web-1", Phase: "Running", Node: "n1", Arch: "amd64", LogOf: "app", Log: []string{"starting", "panic: no"},
			Containers: []ContainerEvidence{
				{Name: "init", Init: true, State: "Completed (exit code 0)", Image: "reg.example/init:1", finished: true},
				{Name: "app", State: "CrashLoopBackOff", Restarts: 4, Image: "reg.example/app:1", Message: "back-off 5m0s", Last: "Error (exit code 2)"}},
			Events: []EventEvidence{{Type: "Warning", Reason: "BackOff", Message: "Back-off restarting"}}}},
		Notes: []string{"2 more pods are not shown"},
	}}
	e.Diagnoses = diagnose(e.Evidence)
	want := `the rollout of Deployment demo/web did not complete

pod web-1: Running on node n1 (amd64)
  init container init: Completed (exit code 0), image reg.example/init:1
  container app: CrashLoopBackOff, 4 restarts, image reg.example/app:1
    back-off 5m0s
    last exit: Error (exit code 2)
  event Warning BackOff: Back-off restarting
  log of app:
  | starting
  | panic: no
note: 2 more pods are not shown

crash loop: container app of pod web-1 starts and exits; the end of its log, above, is the reason.

timed out after 3m0s: 0 of 1 updated replicas are available`
	if got := e.Error(); got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestSplitKeepsEveryRecord(t *testing.T) {
	records := map[Ref]record{}
	for i := range 500 {
		r := Ref{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: strings.Repeat("n", i%50) + string(rune('a'+i%26)) + strings.Repeat("x", i/26)}
		records[r.key()] = record{Ref: r, UID: "u"}
	}
	for _, limit := range []int{1 << 10, 8 << 10, 1 << 20} {
		texts, err := split(records, limit)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, text := range texts {
			found += strings.Count(text, `"uid":"u"`)
			if len(text) > limit*3/2 {
				t.Errorf("a part has %d bytes of %d", len(text), limit)
			}
		}
		if found != len(records) {
			t.Errorf("%d of %d records in parts of %d", found, len(records), limit)
		}
	}
}
