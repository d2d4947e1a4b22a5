package quota

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Refusal is what a ResourceQuota says when it keeps an object out, read from the API server's message. The message itself stays what
// is shown to people.
type Refusal struct {
	// Quota is the name of the ResourceQuota.
	Quota string `json:"quota"`
	// Requested, Used and Limited have the same keys: the resources in which the quota has no room, by the quota's own names
	// ("limits.memory", "pods", "count/sandboxes.core.jr2.dev"). All are nil when Unstated or Uncounted say why.
	Requested corev1.ResourceList `json:"requested,omitempty"`
	Used      corev1.ResourceList `json:"used,omitempty"`
	Limited   corev1.ResourceList `json:"limited,omitempty"`
	// Unstated are the resources that the quota wants every container to state ("requests.cpu"), in the message's order.
	Unstated []string `json:"unstated,omitempty"`
	// Uncounted says that the quota is so new that its controller has not counted yet what is used.
	Uncounted bool `json:"uncounted,omitempty"`
}

// The three messages of the API server's quota admission (k8s.io/apiserver, plugin/resourcequota/controller.go).
var (
	quotaExceeded  = regexp.MustCompile(`exceeded quota: (.+?), requested: (.+?), used: (.+?), limited: (\S+)`)
	quotaUnstated  = regexp.MustCompile(`failed quota: ([^:\s]+): must specify ([^\n]+)`)
	quotaUncounted = regexp.MustCompile(`status unknown for quota: ([^,\s]+), resources: `)
)

// ParseRefusal reads a refusal by a ResourceQuota out of an API server's message, an event or a condition that repeats it. It is false
// when the message is none or its amounts can't be read.
func ParseRefusal(message string) (Refusal, bool) {
	if m := quotaExceeded.FindStringSubmatch(message); m != nil {
		refusal := Refusal{Quota: m[1]}
		for i, into := range []*corev1.ResourceList{&refusal.Requested, &refusal.Used, &refusal.Limited} {
			amounts, ok := parseAmounts(m[i+2])
			if !ok {
				return Refusal{}, false
			}
			*into = amounts
		}
		return refusal, true
	}
	if m := quotaUnstated.FindStringSubmatch(message); m != nil {
		refusal := Refusal{Quota: m[1]}
		for part := range strings.SplitSeq(m[2], ";") { // "requests.cpu for: app,proxy; requests.memory for: app"
			name, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			refusal.Unstated = append(refusal.Unstated, strings.TrimRight(name, ",."))
		}
		return refusal, true
	}
	if m := quotaUncounted.FindStringSubmatch(message); m != nil {
		return Refusal{Quota: m[1], Uncounted: true}, true
	}
	return Refusal{}, false
}

func parseAmounts(text string) (corev1.ResourceList, bool) {
	amounts := corev1.ResourceList{}
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, false
		}
		amount, err := resource.ParseQuantity(strings.TrimRight(value, `".;`)) // what a sentence puts after the last number
		if err != nil {
			return nil, false
		}
		amounts[corev1.ResourceName(name)] = amount
	}
	return amounts, true
}

// Never says that no room that others free lets the request in: it is more than the quota allows in total, or it does not state what the
// quota wants stated. False means "not yet": it is let in when enough of what is used goes, or the quota is raised.
func (r Refusal) Never() bool { return len(r.Unstated) > 0 || len(r.TooMuch()) > 0 }

// TooMuch are the resources of which the request alone is more than the quota allows in total, sorted.
func (r Refusal) TooMuch() []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(r.Requested)) {
		requested := r.Requested[name]
		if limited, ok := r.Limited[name]; !ok || requested.Cmp(limited) > 0 {
			names = append(names, name)
		}
	}
	return names
}
