package preflight

import (
	"strings"
	"testing"

	"jr2.dev/jr2/placement"
)

// A quota that counts something that no Size is about is raised, and no Size is blamed for it.
func TestOnlyMemoryAndCPUAreOfASize(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{
		"": true, "exceeded quota: q, requested: limits.memory=1Gi,requests.cpu=1, used: limits.memory=1Gi,requests.cpu=1, limited: limits.memory=1Gi,requests.cpu=1": true,
		"exceeded quota: q, requested: limits.memory=1Gi,pods=1, used: limits.memory=1Gi,pods=1, limited: limits.memory=1Gi,pods=1": false,
	} {
		if smallerHelps(nil, words) != want {
			t.Errorf("%q: not %t", words, want)
		}
	}
	if fix := raiseFull("n", []placement.Limit{{On: placement.OnQuota, Text: "exceeded"}}, "exceeded quota: q, requested: pods=1, used: pods=4, limited: pods=4"); !strings.Contains(fix, `"pods":"5"`) {
		t.Errorf("a quota that nobody may read: %s", fix)
	}
}

// Two fixes of one quota, typed one after the other, leave it with room for both.
func TestFixesOfOneQuotaAgree(t *testing.T) {
	t.Parallel()
	refused := func(asked string) Finding {
		words := "large would get no pod: exceeded quota: q, requested: " + asked + ", used: limits.cpu=1,limits.memory=1Gi, limited: limits.cpu=1,limits.memory=1Gi"
		fix := RaiseQuota("team-a", words)
		return Finding{Code: CodeSandboxRefused, Message: words + " — raise the quota: " + fix, Fix: fix}
	}
	findings := []Finding{refused("limits.cpu=3,limits.memory=1Gi"), refused("limits.cpu=1,limits.memory=8Gi"), {Code: CodeNoRoom, Message: "no room", Fix: "add a node"}}
	raiseTogether(findings)
	want := `kubectl -n team-a patch resourcequota q --type merge -p '{"spec":{"hard":{"limits.cpu":"4","limits.memory":"9Gi"}}}'`
	for _, f := range findings[:2] {
		if f.Fix != want || !strings.HasSuffix(f.Message, want) {
			t.Errorf("got %q, %q", f.Fix, f.Message)
		}
	}
	if findings[2].Fix != "add a node" {
		t.Errorf("changed %q", findings[2].Fix)
	}
}

func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	const made = `printf %s '{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"jr2-defaults"},"spec":{"limits":[{"type":"Container"`
	for words, want := range map[string]string{
		"failed quota: q: must specify limits.cpu for: agent":                                    made + `,"default":{"cpu":"1"},"defaultRequest":{"cpu":"100m"}}]}}' | kubectl -n team-a apply -f -`,
		"failed quota: q: must specify limits.memory for: a,b; requests.cpu for: a — lower them": made + `,"default":{"memory":"1Gi"},"defaultRequest":{"cpu":"100m","memory":"128Mi"}}]}}' | kubectl -n team-a apply -f -`,
		"failed quota: q: must specify limits.cpu for: a; requests.cpu for: a":                   made + `,"default":{"cpu":"1"},"defaultRequest":{"cpu":"100m"}}]}}' | kubectl -n team-a apply -f -`,
		"failed quota: q: must specify requests.nvidia.com/gpu for: a":                           "",
		"exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1":                    "",
	} {
		if got := DefaultLimits("team-a", words); got != want {
			t.Errorf("%s\n got %s\nwant %s", words, got, want)
		}
	}
}
