package controller

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jr2.dev/jr2/placement/quota"
	"jr2.dev/jr2/placement/v1alpha1"
)

func TestRefusalOf(t *testing.T) {
	for message, test := range map[string]struct {
		code int32
		want string // "": no refusal
	}{
		`pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`:                 {http.StatusForbidden, v1alpha1.ReasonQuotaExceeded},
		`services "a" is forbidden: exceeded quota: q, requested: services=1, used: services=1, limited: services=1`: {http.StatusForbidden, v1alpha1.ReasonQuotaExceeded},
		`pods "a" is forbidden: exceeded quota in words of another server`:                                           {http.StatusForbidden, v1alpha1.ReasonQuotaExceeded},
		`pods "a" is forbidden: failed quota: q: must specify limits.cpu for: harness`:                               {http.StatusForbidden, v1alpha1.ReasonQuotaExceeded},
		`pods "a" is forbidden: status unknown for quota: q, resources: pods`:                                        {http.StatusForbidden, v1alpha1.ReasonQuotaExceeded},
		`pods "a" is forbidden: violates PodSecurity "restricted:latest": host namespaces`:                           {http.StatusForbidden, v1alpha1.ReasonPodRefused},
		`pods "a" is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "quota"`:     {http.StatusForbidden, v1alpha1.ReasonPodRefused},
		`pods "a" is forbidden: error looking up service account ns/default: serviceaccount "default" not found`:     {http.StatusForbidden, v1alpha1.ReasonPodRefused},
		`pods "a" is forbidden: unable to create new content in namespace ns because it is being terminated`:         {http.StatusForbidden, v1alpha1.ReasonPodRefused},
		`admission webhook "w" denied the request: no`:                                                               {http.StatusTeapot, v1alpha1.ReasonPodRefused},
		`Internal error occurred: failed calling webhook "w": connection refused`:                                    {http.StatusInternalServerError, v1alpha1.ReasonPodRefused},
		`admission webhook "w" denied the request without explanation`:                                               {http.StatusBadRequest, v1alpha1.ReasonPodRefused},
		`admission webhook "w" denied the request: no team`:                                                          {http.StatusUnprocessableEntity, v1alpha1.ReasonPodRefused},
		`pods "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no team`:              {http.StatusUnprocessableEntity, v1alpha1.ReasonPodRefused},
		`services "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`:               {http.StatusBadRequest, v1alpha1.ReasonPodRefused},
		`Pod "a" is invalid: spec.containers[0].image: Required value`:                                               {http.StatusUnprocessableEntity, v1alpha1.ReasonPodInvalid},
		`Pod in version "v1" cannot be handled as a Pod`:                                                             {http.StatusBadRequest, v1alpha1.ReasonPodInvalid},
		`namespaces "ns" not found`: {http.StatusNotFound, ""},
		`too many requests`:         {http.StatusTooManyRequests, ""},
		`Unauthorized`:              {http.StatusUnauthorized, ""},
		`Operation cannot be fulfilled on resourcequotas "q"`:  {http.StatusConflict, ""},
		`the server is currently unable to handle the request`: {http.StatusServiceUnavailable, ""},
		`Timeout: request did not complete`:                    {http.StatusGatewayTimeout, ""},
	} {
		got := refusalOf(&apierrors.StatusError{ErrStatus: metav1.Status{Code: test.code, Message: message}})
		if test.want == "" && got != nil || test.want != "" && (got == nil || *got != refusal{test.want, message}) {
			t.Errorf("%s: %+v, want %s", message, got, test.want)
		}
	}
	if refusalOf(errors.New("exceeded quota: says the network")) != nil || refusalOf(nil) != nil {
		t.Error("what no API server said is no refusal")
	}
}

func TestMayFit(t *testing.T) {
	amounts := func(name corev1.ResourceName, text string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(text)}
	}
	refused := quota.Refusal{Quota: "q", Requested: amounts("limits.memory", "1Gi")}
	for name, test := range map[string]struct {
		hard, used corev1.ResourceList
		want       bool
	}{
		"too little":         {amounts("limits.memory", "512Mi"), amounts("limits.memory", "0"), false},
		"all used":           {amounts("limits.memory", "2Gi"), amounts("limits.memory", "1025Mi"), false},
		"just enough":        {amounts("limits.memory", "2Gi"), amounts("limits.memory", "1Gi"), true},
		"nothing used yet":   {amounts("limits.memory", "1Gi"), nil, true},
		"limited no longer":  {amounts("pods", "1"), amounts("pods", "1"), true},
		"nothing counted so": {nil, nil, true},
	} {
		now := &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: test.hard, Used: test.used}}
		if got := mayFit(refused, now); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !mayFit(quota.Refusal{Quota: "q", Unstated: []string{"requests.cpu"}}, &corev1.ResourceQuota{}) {
		t.Error("what is not stated may be stated by a LimitRange now")
	}
}

func TestRetryAfter(t *testing.T) {
	now := at(later).Time
	for refused, want := range map[time.Duration]time.Duration{
		0: time.Second, 500 * time.Millisecond: time.Second, 7 * time.Second: 7 * time.Second, time.Hour: 30 * time.Second, -time.Hour: time.Second,
	} {
		if got := retryAfter(now.Add(-refused), now); got != want {
			t.Errorf("refused for %s: %s, want %s", refused, got, want)
		}
	}
}

// TestPace: a hint that comes while a try goes on is about the next one; another generation was never refused; the oldest goes first.
func TestPace(t *testing.T) {
	p := newPace()
	name := func(n string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: n} }
	p.hint(name("young")) // of nothing
	p.refused(name("young"), pacing{created: at(later).Time, generation: 1})
	if got, ok := p.get(name("young"), 1); !ok || got.hint {
		t.Errorf("%+v %t", got, ok)
	}
	p.hint(name("young"))
	p.try(name("young"))
	if got, _ := p.get(name("young"), 1); got.hint {
		t.Error("the try took the hint")
	}
	p.hint(name("young"))
	p.refused(name("young"), pacing{created: at(later).Time, generation: 1})
	if got, _ := p.get(name("young"), 1); !got.hint {
		t.Error("the hint that came meanwhile is lost")
	}
	if _, ok := p.get(name("young"), 2); ok {
		t.Error("another generation")
	}
	p.refused(name("b"), pacing{created: at(created).Time})
	p.refused(name("a"), pacing{created: at(created).Time})
	p.refused(types.NamespacedName{Namespace: "other", Name: "x"}, pacing{})
	order := p.waiting("ns", func(refusal) bool { return true })
	if len(order) != 3 || order[0].Name != "a" || order[1].Name != "b" || order[2].Name != "young" {
		t.Errorf("%v", order)
	}
	p.forget(name("a"))
	if len(p.waiting("ns", func(refusal) bool { return true })) != 2 {
		t.Error("not forgotten")
	}
}
