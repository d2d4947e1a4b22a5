package preflight

import (
	"errors"
	"regexp"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refusedRight is how the API server says that an authorizer allows something not (source: apiserver, endpoints/handlers/responsewriters).
var refusedRight = regexp.MustCompile(`User ("(?:[^"\\]|\\.)*") cannot (\S+) resource ("(?:[^"\\]|\\.)*") in API group ("(?:[^"\\]|\\.)*") (?:in the namespace ("(?:[^"\\]|\\.)*")|at the cluster scope)`)

// RefusedRight reads out of the API server's words which right a call lacked, and as whom the server knows the caller. The right names no object. ok is false
// for every other error, and for words that other servers choose.
func RefusedRight(err error) (right Right, user string, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) {
		return Right{}, "", false
	}
	words := refusedRight.FindStringSubmatch(status.Status().Message)
	if words == nil {
		return Right{}, "", false
	}
	var texts [5]string
	for i, quoted := range []string{words[1], words[3], words[4], words[5]} {
		if quoted == "" {
			continue
		}
		if texts[i], err = strconv.Unquote(quoted); err != nil {
			return Right{}, "", false
		}
	}
	return Right{Verb: words[2], Resource: texts[1], Group: texts[2], Namespace: texts[3]}, texts[0], true
}
