package preflight

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// CodeAPIDown is the stable code of a finding about an API whose own server, behind the cluster's, does not answer.
const CodeAPIDown = "api-down"

const (
	apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"
	// aggregatedDiscovery asks for all groups and versions in one answer, which says of each whether it could be read.
	aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// APIServices tells the APIs of a cluster that a server of their own serves, such as metrics, and whose server is away: in the words of their
// APIService or, where the caller may not list those, by what the API server calls stale in its discovery. server is
// client.Discovery().RESTClient() of client-go; it is asked once, and once more for the second way.
//
// Such an API hurts who has nothing to do with it: the API server can't say what a namespace holds of it, so no namespace that is deleted goes
// away. That warns. One of needed, the APIs of a set's objects, refuses, because nothing of it can be written. An APIService that nobody has judged
// yet is none that is away.
func APIServices(ctx context.Context, server rest.Interface, needed []schema.GroupVersion) ([]Finding, error) {
	down, err := unavailable(ctx, server)
	if apierrors.IsForbidden(err) {
		down, err = stale(ctx, server)
	}
	if err != nil {
		return nil, fmt.Errorf("read which APIs of the cluster are served: %w", err)
	}
	slices.SortFunc(down, func(a, b deadAPI) int { return strings.Compare(a.name(), b.name()) })
	var findings []Finding
	for _, api := range down {
		findings = append(findings, api.finding(slices.Contains(needed, api.version)))
	}
	return findings, nil
}

// A deadAPI is a version of a group that nobody serves.
type deadAPI struct {
	version schema.GroupVersion
	// service is "namespace/name" of the Service that should; "" when it was not read.
	service string
	// words are the cluster's.
	words string
}

// name is that of the APIService.
func (a deadAPI) name() string { return a.version.Version + "." + a.version.Group }

func (a deadAPI) finding(needed bool) Finding {
	f := Finding{Severity: Warn, Code: CodeAPIDown, Object: "APIService " + a.name()}
	server, mend := "the server behind "+a.version.String(), "bring its server back"
	if a.service != "" {
		server += " (Service " + a.service + ")"
		mend = "bring the pods of Service " + a.service + " back"
	}
	f.Fix = fmt.Sprintf("%s, or remove APIService %s where nobody needs it any more", mend, a.name())
	f.Message = fmt.Sprintf("%s does not answer: %s — until it does, no namespace that is deleted goes away, because the API server can't say what it holds", server, a.words)
	removal := " (kubectl delete apiservice " + a.name() + ")"
	if needed {
		f.Severity = Refuse
		f.Message = "refusing: " + f.Message + ", and objects of this Instance can't be written — " + f.Fix + removal + ". Nothing was applied."
		return f
	}
	f.Message += " — " + f.Fix + removal
	return f
}

// apiServiceList is what is read of APIServices; their Go types are in a module of the API server's own.
type apiServiceList struct {
	Items []struct {
		Spec struct {
			Group, Version string
			Service        *struct{ Namespace, Name string }
		}
		Status struct{ Conditions []metav1.Condition }
	}
}

// unavailable reads APIServices that are not available, as the aggregator has found.
func unavailable(ctx context.Context, server rest.Interface) ([]deadAPI, error) {
	raw, err := server.Get().AbsPath(apiServicesPath).SetHeader("Accept", "application/json").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var list apiServiceList
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", apiServicesPath, err)
	}
	var down []deadAPI
	for _, item := range list.Items {
		if item.Spec.Service == nil { // the API server's own, or a CustomResourceDefinition's
			continue
		}
		at := slices.IndexFunc(item.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" && c.Status == metav1.ConditionFalse })
		if at < 0 {
			continue
		}
		said := item.Status.Conditions[at]
		down = append(down, deadAPI{
			version: schema.GroupVersion{Group: item.Spec.Group, Version: item.Spec.Version},
			service: item.Spec.Service.Namespace + "/" + item.Spec.Service.Name,
			words:   strings.TrimPrefix(said.Reason+": "+cmp.Or(said.Message, "nothing more is said"), ": "),
		})
	}
	return down, nil
}

// stale reads the versions whose server did not answer when the API server asked last what it serves. Everybody whom it knows may ask.
func stale(ctx context.Context, server rest.Interface) ([]deadAPI, error) {
	raw, err := server.Get().AbsPath("/apis").SetHeader("Accept", aggregatedDiscovery).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(raw, &groups); err != nil {
		return nil, fmt.Errorf("/apis: %w", err)
	}
	var down []deadAPI
	for _, group := range groups.Items {
		for _, version := range group.Versions {
			if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
				down = append(down, deadAPI{
					version: schema.GroupVersion{Group: group.Name, Version: version.Version},
					words:   "the API server calls what it knows of it stale (its APIService, which says more, may not be read)",
				})
			}
		}
	}
	return down, nil
}
