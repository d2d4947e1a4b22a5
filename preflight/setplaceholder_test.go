package preflight_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"jr2.dev/jr2/preflight"
)

// TestA05PlaceholdersInSecrets: a template Secret is never applied over a real one, and no value of it is said.
func TestA05PlaceholdersInSecrets(t *testing.T) {
	for value, left := range map[string]bool{
		"REPLACE_ME":                             true,
		"replace-me":                             true,
		"  REPLACE_ME\n":                         true,
		"CHANGEME":                               true,
		"changeme":                               true,
		"__CHANGE_ME__":                          true,
		"REPLACE_ME_WITH_A_REAL_KEY":             true,
		"REPLACE_ME=":                            true,
		"postgres://jarvis:REPLACE_ME@db:5432/j": true,
		"postgres://<user>:<password>@db/jarvis": true,
		"<your password>":                        true,
		"<PASSWORD>":                             true,
		"USER=jarvis\nPASSWORD=REPLACE_ME\n":     true,
		`{"token": "REPLACE_ME"}`:                true,

		"":                             false,
		"correct horse battery staple": false,
		"Zk9<ab>x!2":                   false, // a password may hold any sign
		"<!>":                          false,
		"dGVzdC1yZXBsYWNl":             false,
		"DO_NOT_CHANGE_ME":             false,
		"exchangement":                 false,
		"please replace me":            false,
		"postgres://jarvis:s3cret@db/jarvis?sslmode=verify": false,
		"Jarvis <jarvis@example.com>":                       false,
		"${DB_PASSWORD}":                                    false,
		"{{ .Values.password }}":                            false,
		"<config><a>b</a></config>":                         false,
		"# REPLACE_ME is what the example says\nKEY=abc123": false,
		"-----BEGIN PRIVATE KEY-----\nMIIE<\n-----END":      false,
	} {
		for _, field := range []string{"data", "stringData"} {
			text := value
			if field == "data" {
				text = base64.StdEncoding.EncodeToString([]byte(value))
			}
			secret := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "jarvis", "name": "jarvis-secrets"},
				field: map[string]any{"FINE": "MTIz", "DATABASE_URL": text},
			}}
			findings := preflight.Placeholders([]*unstructured.Unstructured{secret})
			if !left {
				says(t, findings)
				continue
			}
			says(t, findings, "refuse placeholder Secret jarvis/jarvis-secrets: under the key DATABASE_URL, which would replace the real value")
			if said := fmt.Sprint(findings); value != "" && strings.Contains(said, strings.TrimSpace(value)) || strings.Contains(said, text) {
				t.Errorf("the value %q is said: %s", value, said)
			}
		}
	}
}

// TestA05PlaceholdersElsewhere: in images they refuse, in hosts and other values they warn.
func TestA05PlaceholdersElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"images of every place": {
			workloadYAML("Deployment", "api", "", `{initContainers: [{name: dist, image: "git.example.com/dist@sha256:REPLACE_ME"}], containers: [{name: api, image: REPLACE_ME}],
				ephemeralContainers: [{name: debug, image: "<registry>/debug:v1"}], volumes: [{name: models, image: {reference: "git.example.com/models:v1-REPLACE_ME"}}]}`),
			[]string{
				`refuse placeholder Deployment jarvis/api: spec.template.spec.containers[0].image is "REPLACE_ME"`,
				"refuse placeholder Deployment jarvis/api: spec.template.spec.ephemeralContainers[0].image",
				"refuse placeholder Deployment jarvis/api: spec.template.spec.initContainers[0].image",
				"refuse placeholder Deployment jarvis/api: spec.template.spec.volumes[0].image.reference",
			},
		},
		"an image of a CronJob": {
			`{apiVersion: batch/v1, kind: CronJob, metadata: {namespace: jarvis, name: c}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: CHANGEME}]}}}}}}`,
			[]string{"refuse placeholder CronJob jarvis/c: spec.jobTemplate.spec.template.spec.containers[0].image"},
		},
		"a host": {
			`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: jarvis, name: web}, spec: {tls: [{hosts: ["<host>"]}], rules: [{host: jarvis.replace-me.example.com}]}}`,
			[]string{
				"warn placeholder Ingress jarvis/web: spec.rules[0].host holds the placeholder replace-me — write the real value there",
				"warn placeholder Ingress jarvis/web: spec.tls[0].hosts[0] holds the placeholder <host>",
			},
		},
		"a ConfigMap and an environment": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: jarvis, name: c}, data: {URL: "https://REPLACE_ME/", NGINX: "# CHANGE_ME: see the manual\nlisten 80;\n"}}` +
				"\n" + workloadYAML("Deployment", "api", "", `{containers: [{name: api, image: "`+pinned+`", env: [{name: KEY, value: changeme}]}]}`),
			[]string{
				"warn placeholder ConfigMap jarvis/c: data.URL holds the placeholder REPLACE_ME",
				"warn placeholder Deployment jarvis/api: spec.template.spec.containers[0].env[0].value holds the placeholder changeme",
			},
		},
		"a Secret's annotation": {
			`{apiVersion: v1, kind: Secret, metadata: {namespace: jarvis, name: s, annotations: {owner: REPLACE_ME}}, data: {a: b}}`,
			[]string{"warn placeholder Secret jarvis/s: metadata.annotations.owner"},
		},
		"no false alarm": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: jarvis, name: c}, data: {HTML: "<html>\n<body></body>\n</html>", XML: "<a/>", ARROW: "a <b> c", LOG: "https://example.com/<unknown"}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {description: "write REPLACE_ME where nothing is known"}}` +
				"\n" + workloadYAML("Deployment", "changemeter", "", `{containers: [{name: api, image: "registry.example.com/changemeter@sha256:`+strings.Repeat("0", 64)+`", args: ["--replace", "me"]}]}`),
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) { says(t, preflight.Placeholders(manifests(t, test.text)), test.want...) })
	}
}
