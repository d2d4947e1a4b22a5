package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// mixture makes n objects of one namespace: of each ten, four ConfigMaps of 1 KiB, two Secrets, two Services and two Deployments of no
// replicas, as the values of JSON. With changed, the value of one ConfigMap is another one.
func mixture(n int, namespace string, changed bool) []map[string]any {
	objects := make([]map[string]any, 0, n)
	for i := range n {
		object := one(i)
		meta := object["metadata"].(map[string]any)
		meta["namespace"] = namespace
		meta["labels"] = map[string]any{"app.kubernetes.io/name": meta["name"], "app.kubernetes.io/part-of": "benchmark"}
		objects = append(objects, object)
	}
	if changed {
		data := objects[0]["data"].(map[string]any)
		data["settings"] = "changed" + data["settings"].(string)[len("changed"):]
	}
	return objects
}

func one(i int) map[string]any {
	name := fmt.Sprintf("o-%05d", i)
	object := func(apiVersion, kind, field string, value map[string]any) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, field: value}
	}
	switch i % 10 {
	case 0, 1, 2, 3:
		return object("v1", "ConfigMap", "data", map[string]any{"settings": settings(i)})
	case 4, 5:
		return object("v1", "Secret", "stringData", map[string]any{"user": name, "password": fmt.Sprintf("not-a-real-password-%d", i)})
	case 6, 7:
		return object("v1", "Service", "spec", map[string]any{
			"selector": selector(name),
			"ports":    []any{map[string]any{"name": "http", "port": int64(80), "protocol": "TCP", "targetPort": int64(8080)}},
		})
	default:
		return object("apps/v1", "Deployment", "spec", deployment(name))
	}
}

func selector(name string) map[string]any { return map[string]any{"app.kubernetes.io/name": name} }

func deployment(name string) map[string]any {
	return map[string]any{
		"replicas": int64(0),
		"selector": map[string]any{"matchLabels": selector(name)},
		"template": map[string]any{
			"metadata": map[string]any{"labels": selector(name)},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name":  "main",
				"image": "registry.example.com/app:1.0",
				"ports": []any{map[string]any{"name": "http", "containerPort": int64(8080), "protocol": "TCP"}},
				"env":   []any{map[string]any{"name": "MODE", "value": "production"}, map[string]any{"name": "NAME", "value": name}},
				"resources": map[string]any{
					"requests": map[string]any{"cpu": "100m", "memory": "128Mi"},
					"limits":   map[string]any{"memory": "256Mi"},
				},
			}}},
		},
	}
}

// settings is a text of 1 KiB as configuration has it: lines of keys and values. Noise would not fit into the 1 MiB of a Helm release.
func settings(i int) string {
	var b strings.Builder
	for line := 0; b.Len() < 1024; line++ {
		fmt.Fprintf(&b, "setting.%d.of.%d = value %d\n", line, i, i*31+line)
	}
	return b.String()[:1024]
}

func asUnstructured(objects []map[string]any) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		all[i] = &unstructured.Unstructured{Object: o}
	}
	return all
}

// writeInputs writes what the commands read: manifests/all.yaml, and a chart of the same objects in the folder chart.
func writeInputs(dir string, objects []map[string]any) error {
	var text strings.Builder
	for _, o := range objects {
		raw, err := utiljson.Marshal(o)
		if err != nil {
			return err
		}
		doc, err := yaml.JSONToYAML(raw)
		if err != nil {
			return err
		}
		text.WriteString("---\n")
		text.Write(doc)
	}
	for path, content := range map[string]string{
		"manifests/all.yaml":       text.String(),
		"chart/Chart.yaml":         "apiVersion: v2\nname: benchmark\nversion: 1.0.0\n",
		"chart/templates/all.yaml": text.String(),
	} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}
