package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"jr2.dev/jr2/apply"
)

func TestDiff(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"equal", "{spec: {a: 1}}", "{spec: {a: 1}}", ""},
		{"notes of the server", "{metadata: {resourceVersion: a, generation: 1, managedFields: []}, status: {x: 1}}", "{metadata: {resourceVersion: b, generation: 2}}", ""},
		{"our own note", "{metadata: {name: a}}", "{metadata: {name: a, annotations: {jr2.dev/want: x}}}", ""},
		{"added and removed", "{spec: {a: 1, c: {d: 2}}}", "{spec: {b: null, c: {e: [3]}}}", "spec.a: 1 -> (absent)|spec.b: (absent) -> null|spec.c.d: 2 -> (absent)|spec.c.e: (absent) -> [3]"},
		{"another type", "{spec: {a: {b: 1}}}", "{spec: {a: [1]}}", `spec.a: {"b":1} -> [1]`},
		{"names with dots", "{metadata: {labels: {a.b/c: x}}}", "{metadata: {labels: {a.b/c: z}}}", `metadata.labels["a.b/c"]: "x" -> "z"`},
		{"list by name", "{l: [{name: a, v: 1}, {name: b, v: 1}]}", "{l: [{name: c, v: 1}, {name: b, v: 2}]}", `l[name="a"]: {"name":"a","v":1} -> (absent)|l[name="b"].v: 1 -> 2|l[name="c"]: (absent) -> {"name":"c","v":1}`},
		{"list by two keys", "{l: [{port: 1, protocol: TCP, v: a}, {port: 1, protocol: UDP, v: a}]}", "{l: [{port: 1, protocol: TCP, v: a}, {port: 1, protocol: UDP, v: b}]}", `l[port=1,protocol="UDP"].v: "a" -> "b"`},
		{"names that repeat", "{l: [{name: a, mountPath: /x}, {name: a, mountPath: /y}]}", "{l: [{name: a, mountPath: /x}, {name: b, mountPath: /y}]}", `l[mountPath="/y"].name: "a" -> "b"`},
		{"order alone", "{l: [{name: a}, {name: b}]}", "{l: [{name: b}, {name: a}]}", `l[0].name: "a" -> "b"|l[1].name: "b" -> "a"`},
		{"list of words", "{l: [a, b]}", "{l: [a, c, d]}", `l[1]: "b" -> "c"|l[2]: (absent) -> "d"`},
		{"what a terminal obeys", "{a: \"\\x1b[31m\\x9b\"}", "{a: x}", `a: "\u001b[31m\u009b" -> "x"`},
		{"a Secret", "{apiVersion: v1, kind: Secret, type: a, metadata: {labels: {l: a}, annotations: {m: hush}}, data: {k: hush}, x: hush}", "{apiVersion: v1, kind: Secret, type: b, metadata: {labels: {l: b}, annotations: {m: y}}, data: {k: y}, x: y}",
			`data.k: **** -> ****|metadata.annotations.m: **** -> ****|metadata.labels.l: "a" -> "b"|type: "a" -> "b"|x: **** -> ****`},
		{"a Secret without data", "{apiVersion: v1, kind: Secret}", "{apiVersion: v1, kind: Secret, data: {k: hush}, metadata: {annotations: {m: hush}}}", "data.k: (absent) -> ****|metadata: (absent) -> ****"},
		{"another group's Secret", "{apiVersion: example.com/v1, kind: Secret, data: {k: a}}", "{apiVersion: example.com/v1, kind: Secret, data: {k: b}}", `data.k: "a" -> "b"`},
	} {
		var objs [2]*unstructured.Unstructured
		for i, text := range []string{tt.before, tt.after} {
			objs[i] = &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &objs[i].Object); err != nil {
				t.Fatal(tt.name, err)
			}
		}
		var lines []string
		for _, c := range apply.Diff(objs[0], objs[1]) {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", c.Path, c.Old, c.New))
		}
		if got := strings.Join(lines, "|"); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}
