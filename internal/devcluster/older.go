package devcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ServerVersion makes the API server say that it is of that version, such as "v1.34.2" or "v1.31.4-gke.1183000".
func ServerVersion(gitVersion string) Wrapper {
	return func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/version" && r.URL.Path != "/version/" {
				return next.RoundTrip(r)
			}
			return editJSON(next, r, func(body map[string]any) {
				major, minor, _ := strings.Cut(strings.TrimPrefix(gitVersion, "v"), ".")
				minor, _, _ = strings.Cut(minor, ".")
				body["gitVersion"], body["major"], body["minor"] = gitVersion, major, minor
			})
		})
	}
}

// DropPodResources makes a dry run of a Pod return without the resources of the pod as a whole: what an API server does
// that knows the field and has it turned off.
func DropPodResources() Wrapper {
	return dryRunPods(func(spec map[string]any) { delete(spec, "resources") })
}

// DropImageVolumes makes a dry run of a Pod return without its image volumes and their mounts, as an API server does that has them turned off.
// One of 1.36 can't be told to.
func DropImageVolumes() Wrapper {
	return dryRunPods(func(spec map[string]any) {
		dropped := map[any]bool{}
		without(spec, "volumes", func(volume map[string]any) bool {
			_, image := volume["image"]
			dropped[volume["name"]] = image
			return image
		})
		for _, kind := range []string{"containers", "initContainers"} {
			without(spec, kind, func(container map[string]any) bool {
				without(container, "volumeMounts", func(mount map[string]any) bool { return dropped[mount["name"]] })
				return false
			})
		}
	})
}

// without takes objects out of a list of an object.
func without(object map[string]any, list string, gone func(map[string]any) bool) {
	all, ok := object[list].([]any)
	if !ok {
		return
	}
	object[list] = slices.DeleteFunc(all, func(item any) bool {
		found, ok := item.(map[string]any)
		return ok && gone(found)
	})
}

// dryRunPods changes the spec of the pod that a dry run returns.
func dryRunPods(edit func(spec map[string]any)) Wrapper {
	return func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			writes := r.Method == http.MethodPost || r.Method == http.MethodPatch || r.Method == http.MethodPut
			segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
			// api/v1/namespaces/NAMESPACE/pods[/NAME]
			pods := len(segments) >= 5 && len(segments) <= 6 && segments[1] == "v1" && segments[4] == "pods"
			if !writes || !pods || !slices.Contains(r.URL.Query()["dryRun"], "All") {
				return next.RoundTrip(r)
			}
			return editJSON(next, r, func(body map[string]any) {
				if spec, ok := body["spec"].(map[string]any); ok {
					edit(spec)
				}
			})
		})
	}
}

// editJSON asks for the answer in JSON and changes it if it is a success.
func editJSON(next http.RoundTripper, r *http.Request, edit func(body map[string]any)) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	// The transport undoes a compression that it has asked for itself.
	r.Header.Del("Accept-Encoding")
	response, err := next.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusMultipleChoices {
		return response, err
	}
	defer response.Body.Close()
	var body map[string]any
	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return nil, fmt.Errorf("edit the answer to %s %s: %w", r.Method, r.URL.Path, err)
	}
	edit(body)
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(data))
	response.ContentLength = int64(len(data))
	response.Header.Set("Content-Length", strconv.Itoa(len(data)))
	return response, nil
}
