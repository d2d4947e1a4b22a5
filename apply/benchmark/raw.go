package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
)

const rawConcurrency = 16

// raw is the measure of all others: the requests that nobody can spare who applies on the server, from bodies that are encoded before.
func raw() engine {
	return engine{
		name:    "raw",
		told:    fmt.Sprintf("bare server-side-apply PATCHes of encoded bodies, %d at a time, one HTTP/2 connection", rawConcurrency),
		prepare: prepareRaw,
	}
}

func prepareRaw(j job) (func(context.Context) error, error) {
	bodies := make([][]byte, len(j.objects))
	paths := make([]string, len(j.objects))
	for i, o := range j.objects {
		var err error
		if bodies[i], err = utiljson.Marshal(o); err != nil {
			return nil, err
		}
		name := o["metadata"].(map[string]any)["name"].(string)
		paths[i] = collection(o["kind"].(string), j.namespace) + "/" + name + "?fieldManager=raw&force=true"
	}
	config := j.fresh()
	return func(ctx context.Context) error {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return err
		}
		defer client.CloseIdleConnections()
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(rawConcurrency)
		for i := range bodies {
			g.Go(func() error {
				return send(ctx, client, http.MethodPatch, config.Host+paths[i], "application/json", bodies[i])
			})
		}
		return g.Wait()
	}, nil
}

// collection is the path of all objects of a kind.
func collection(kind, namespace string) string {
	switch kind {
	case "ConfigMap":
		return "/api/v1/namespaces/" + namespace + "/configmaps"
	case "Secret":
		return "/api/v1/namespaces/" + namespace + "/secrets"
	case "Service":
		return "/api/v1/namespaces/" + namespace + "/services"
	case "Deployment":
		return "/apis/apps/v1/namespaces/" + namespace + "/deployments"
	}
	panic("no path for " + kind)
}

func send(ctx context.Context, client *http.Client, method, url, accept string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Accept", accept)
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/apply-patch+yaml") // JSON is YAML
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 2048))
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// lists read the four kinds whole, in the raw engine's namespace: the least that an engine must do which looks at every object.
func lists(name, told, accept string) engine {
	return engine{name: name, told: told, within: "raw", phases: []phase{noop}, prepare: func(j job) (func(context.Context) error, error) {
		config := j.fresh()
		return func(ctx context.Context) error {
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				return err
			}
			defer client.CloseIdleConnections()
			g, ctx := errgroup.WithContext(ctx)
			for _, kind := range []string{"ConfigMap", "Secret", "Service", "Deployment"} {
				g.Go(func() error {
					return send(ctx, client, http.MethodGet, config.Host+collection(kind, j.namespace), accept, nil)
				})
			}
			return g.Wait()
		}, nil
	}}
}

func listsAsJSON() engine {
	return lists("LISTs, JSON", "four LISTs of the namespace of raw, whole objects as JSON, not decoded", "application/json")
}

func listsOfMetadata() engine {
	return lists("LISTs, metadata", "the same, metadata alone as protobuf, not decoded",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
}
