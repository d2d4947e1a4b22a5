package apply

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

var quotaExceeded = regexp.MustCompile(`exceeded quota: (.+?), requested: (.+?), used: (.+?), limited: (\S+)`)

// A quotaRefusal is what an "exceeded quota" message says.
type quotaRefusal struct {
	quota                    string
	requested, used, limited map[string]resource.Quantity
}

// parseQuota reads a refusal by a quota; false when the message is none or can't be read.
func parseQuota(message string) (quotaRefusal, bool) {
	m := quotaExceeded.FindStringSubmatch(message)
	if m == nil {
		return quotaRefusal{}, false
	}
	q := quotaRefusal{quota: m[1]}
	for i, into := range []*map[string]resource.Quantity{&q.requested, &q.used, &q.limited} {
		amounts, ok := parseAmounts(m[i+2])
		if !ok {
			return quotaRefusal{}, false
		}
		*into = amounts
	}
	return q, true
}

func parseAmounts(s string) (map[string]resource.Quantity, bool) {
	amounts := map[string]resource.Quantity{}
	for _, part := range strings.Split(strings.TrimSpace(s), ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, false
		}
		q, err := resource.ParseQuantity(strings.TrimRight(value, `".;`))
		if err != nil {
			return nil, false
		}
		amounts[name] = q
	}
	return amounts, true
}

// classifyQuota tells "not yet" from "never": a request that exceeds what the quota allows in total never fits. A message that can't
// be read is not waited on, because nobody could say for what.
func classifyQuota(message string) Class {
	q, ok := parseQuota(message)
	if !ok {
		return ClassQuotaNever
	}
	for name, requested := range q.requested {
		if limited, ok := q.limited[name]; !ok || requested.Cmp(limited) > 0 {
			return ClassQuotaNever
		}
	}
	return ClassQuotaWait
}
