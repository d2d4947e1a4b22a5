package apply

import "jr2.dev/jr2/placement/quota"

// parseQuota reads a refusal by a quota that has no room; false when the message is none or can't be read.
func parseQuota(message string) (quota.Refusal, bool) {
	q, ok := quota.ParseRefusal(message)
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
