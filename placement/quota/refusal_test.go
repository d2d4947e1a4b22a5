package quota_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"jr2.dev/jr2/placement/quota"
)

const seedRefusal = `pods "ws-5e817334-x-0-61ru0u" is forbidden: exceeded quota: team-quota, requested: limits.memory=1Gi, used: limits.memory=2Gi, limited: limits.memory=512Mi`

func TestF16ParseRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		message string
		quota   string // "" means that it is no refusal by a quota
		never   bool
		tooMuch string
		// numbers are "resource requested/used/limited", sorted
		numbers  []string
		unstated []string
	}{
		"the document's":       {message: seedRefusal, quota: "team-quota", never: true, tooMuch: "limits.memory", numbers: []string{"limits.memory 1Gi/2Gi/512Mi"}},
		"not yet":              {message: `pods "a" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1`, quota: "q", numbers: []string{"requests.cpu 600m/600m/1"}},
		"as much as it allows": {message: `exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1m, limited: requests.cpu=1`, quota: "q", numbers: []string{"requests.cpu 1/1m/1"}},
		"never":                {message: `exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1`, quota: "q", never: true, tooMuch: "requests.cpu", numbers: []string{"requests.cpu 2/0/1"}},
		"one of two never": {message: `exceeded quota: q.team, requested: pods=1,requests.memory=3Gi, used: pods=4,requests.memory=0, limited: pods=4,requests.memory=2Gi`, quota: "q.team", never: true,
			tooMuch: "requests.memory", numbers: []string{"pods 1/4/4", "requests.memory 3Gi/0/2Gi"}},
		"a count of the kind": {message: `sandboxes.core.jr2.dev "s" is forbidden: exceeded quota: q, requested: count/sandboxes.core.jr2.dev=1, used: count/sandboxes.core.jr2.dev=1, limited: count/sandboxes.core.jr2.dev=1`,
			quota: "q", numbers: []string{"count/sandboxes.core.jr2.dev 1/1/1"}},
		"pods: 0":               {message: `exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0`, quota: "none", never: true, tooMuch: "pods", numbers: []string{"pods 1/0/0"}},
		"inside an event":       {message: `Error creating: pods "d-1" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1.`, quota: "q", numbers: []string{"pods 1/1/1"}},
		"a device":              {message: `exceeded quota: q, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2`, quota: "q", numbers: []string{"requests.nvidia.com/gpu 1/2/2"}},
		"unstated":              {message: `pods "a" is forbidden: failed quota: q: must specify requests.cpu for: app`, quota: "q", never: true, unstated: []string{"requests.cpu"}},
		"two unstated":          {message: `failed quota: q: must specify limits.memory for: app,proxy; requests.cpu for: app`, quota: "q", never: true, unstated: []string{"limits.memory", "requests.cpu"}},
		"a claim's":             {message: `persistentvolumeclaims "c" is forbidden: failed quota: q: must specify requests.storage`, quota: "q", never: true, unstated: []string{"requests.storage"}},
		"unstated, in an event": {message: `Error creating: pods "d-1" is forbidden: failed quota: q: must specify limits.cpu for: app`, quota: "q", never: true, unstated: []string{"limits.cpu"}},
		"not counted yet":       {message: `pods "a" is forbidden: status unknown for quota: q, resources: pods`, quota: "q"},
		"missing rights":        {message: `pods is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "quota"`},
		"a number of no sort":   {message: `exceeded quota: q, requested: pods=many, used: pods=1, limited: pods=1`},
		"cut off":               {message: `exceeded quota: q, requested: pods=1, used: pods=1`},
		"nothing":               {},
	} {
		t.Run(name, func(t *testing.T) {
			refusal, ok := quota.ParseRefusal(test.message)
			if ok != (test.quota != "") || refusal.Quota != test.quota {
				t.Fatalf("got %t %+v", ok, refusal)
			}
			var numbers, tooMuch []string
			for resource, requested := range refusal.Requested {
				used, limited := refusal.Used[resource], refusal.Limited[resource]
				numbers = append(numbers, fmt.Sprintf("%s %s/%s/%s", resource, requested.String(), used.String(), limited.String()))
			}
			slices.Sort(numbers)
			for _, resource := range refusal.TooMuch() {
				tooMuch = append(tooMuch, string(resource))
			}
			if !slices.Equal(numbers, test.numbers) || refusal.Never() != test.never || strings.Join(tooMuch, " ") != test.tooMuch || !slices.Equal(refusal.Unstated, test.unstated) {
				t.Errorf("got %v never %t (%v) unstated %v", numbers, refusal.Never(), tooMuch, refusal.Unstated)
			}
			if refusal.Uncounted != (name == "not counted yet") {
				t.Errorf("uncounted: %t", refusal.Uncounted)
			}
		})
	}
}

func ExampleParseRefusal() {
	refusal, _ := quota.ParseRefusal(seedRefusal)
	limited := refusal.Limited[corev1.ResourceLimitsMemory]
	fmt.Println(refusal.Quota, limited.String(), refusal.Never())
	// Output: team-quota 512Mi true
}
