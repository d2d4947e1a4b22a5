package apply

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A statusCondition is one of status.conditions.
type statusCondition struct {
	status, reason, message string
	at                      time.Time
	// stale says that it is about an older generation of the object.
	stale bool
}

func (c *statusCondition) isTrue() bool { return c != nil && c.status == "True" && !c.stale }

// conditionsOf reads the conditions by their types.
func conditionsOf(u *unstructured.Unstructured) map[string]*statusCondition {
	all := map[string]*statusCondition{}
	list, _ := dig(u.Object, "status", "conditions").([]any)
	for _, x := range list {
		c := &statusCondition{status: text(dig(x, "status")), reason: text(dig(x, "reason")), message: text(dig(x, "message"))}
		c.at, _ = time.Parse(time.RFC3339, text(dig(x, "lastTransitionTime")))
		if of, ok := dig(x, "observedGeneration").(int64); ok && of != 0 && of < u.GetGeneration() {
			c.stale = true
		}
		all[text(dig(x, "type"))] = c
	}
	return all
}

// observed says that the controller has seen the object as it is now, as far as it tells that at all.
func observed(u *unstructured.Unstructured) (Status, bool) {
	if of, ok := dig(u.Object, "status", "observedGeneration").(int64); ok && of < u.GetGeneration() {
		return waiting("its controller has not seen generation %d of it", u.GetGeneration()), false
	}
	return Status{}, true
}

// readyCustom goes by the conventions of conditions (kubernetes/community, api-conventions) and of kstatus.
func readyCustom(u *unstructured.Unstructured) Status {
	if status, ok := observed(u); !ok {
		return status
	}
	conditions := conditionsOf(u)
	if c := conditions["Stalled"]; c.isTrue() {
		return Status{Failed: true, FailedAt: c.at, Message: "it is stalled: " + because(c.reason, c.message)}
	}
	if c := conditions["Reconciling"]; c.isTrue() {
		return waiting("it is reconciled: %s", because(c.reason, c.message))
	}
	for _, name := range []string{"Ready", "Available"} {
		if c := conditions[name]; c != nil {
			return c.decide(name)
		}
	}
	return exists()
}

// decide reads a condition that must be true.
func (c *statusCondition) decide(name string) Status {
	switch {
	case c.stale:
		return waiting("its condition %s is of an older generation", name)
	case c.status == "True":
		return Status{Done: true, Message: fmt.Sprintf("its condition %s is true", name)}
	}
	status := waiting("its condition %s is %s", name, c.status)
	if why := because(c.reason, c.message); why != "" {
		status.Message += ": " + why
	}
	return status
}

func readyDefinition(u *unstructured.Unstructured) Status {
	conditions := conditionsOf(u)
	if c := conditions["NamesAccepted"]; c != nil && c.status == "False" {
		at := c.at
		return Status{Failed: true, FailedAt: at, Message: "its names are not accepted: " + because(c.reason, c.message)}
	}
	if c := conditions["Established"]; c != nil {
		return c.decide("Established")
	}
	return waiting("it is not established yet")
}

func readyAPIService(u *unstructured.Unstructured) Status {
	if c := conditionsOf(u)["Available"]; c != nil {
		return c.decide("Available")
	}
	return waiting("it is not known yet whether it is available")
}

// readyAutoscaler is done when the controller saw it: whether it can scale depends on metrics that come with running pods.
func readyAutoscaler(u *unstructured.Unstructured) Status {
	status, ok := observed(u)
	if !ok {
		return status
	}
	status = exists()
	for _, name := range []string{"AbleToScale", "ScalingActive"} {
		if c := conditionsOf(u)[name]; c != nil && c.status == "False" {
			status.Note = "it does not scale now: " + because(c.reason, c.message)
			return status
		}
	}
	return status
}
