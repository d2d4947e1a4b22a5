package controller

import (
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"jr2.dev/jr2/placement/quota"
	"jr2.dev/jr2/placement/v1alpha1"
)

// A refusal is why something is not there: the reason and the message of a condition.
type refusal struct {
	reason, message string
}

// refusalOf reads the error of a create. It is nil when the error tells nothing of the object: no connection, an overloaded server, a
// namespace that is not there. Such a request is repeated as any other.
func refusalOf(err error) *refusal {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	message := status.Status().Message
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return nil
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		if policyRefuses(message) {
			return &refusal{v1alpha1.ReasonPodRefused, message}
		}
		return &refusal{v1alpha1.ReasonPodInvalid, message}
	default:
		if code == http.StatusForbidden && quotaRefuses(message) {
			return &refusal{v1alpha1.ReasonQuotaExceeded, message}
		}
		// A webhook chooses its code. One that can't be called is an internal error; it may stay so for long, and whoever waits must hear of it.
		if code >= 400 && code <= http.StatusInternalServerError {
			return &refusal{v1alpha1.ReasonPodRefused, message}
		}
		return nil
	}
}

// quotaRefuses says that a Forbidden is a ResourceQuota's. The words are the API server's; besides "exceeded quota" there are two that
// package quota knows.
func quotaRefuses(message string) bool {
	_, ok := quota.ParseRefusal(message)
	return ok || strings.Contains(message, "exceeded quota")
}

// policyRefuses says that a webhook or a ValidatingAdmissionPolicy denied the object. Both choose their code, and one that chooses none gives
// that of a wrong object: 400 and 422. The words are the API server's.
func policyRefuses(message string) bool {
	return strings.Contains(message, "denied the request") || strings.Contains(message, "ValidatingAdmissionPolicy") && strings.Contains(message, "denied request")
}
