package apply

import "jr2.dev/jr2/placement"

// parseQuota reads a refusal by a quota that has no room; false when the message is none or can't be read.
func parseQuota(message string) (placement.QuotaRefusal, bool) {
	q, ok := placement.ParseQuotaRefusal(message)
	return q, ok && q.Requested != nil
}

// classifyQuota tells "not yet" from "never": a request that exceeds what the quota allows in total never fits. A message that can't
// be read is not waited on, because nobody could say for what.
func classifyQuota(message string) Class {
	if q, ok := parseQuota(message); !ok || q.Never() {
		return ClassQuotaNever
	}
	return ClassQuotaWait
}
