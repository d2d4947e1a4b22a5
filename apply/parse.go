package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "sigs.k8s.io/json"
)

// A value is one document of a stream, before anyone looked at what it is.
type value struct {
	data any
	line int
}

// parse reads the documents of a file. A file that begins like JSON and is not is read as YAML, which says better what is wrong.
func parse(origin string, raw []byte) ([]document, []Problem) {
	values, problems, ok := parseJSON(origin, raw)
	if !ok {
		values, problems = parseYAML(origin, raw)
	}
	var docs []document
	for _, v := range values {
		more, bad := documents(v.data, fmt.Sprintf("%s:%d", origin, v.line))
		docs, problems = append(docs, more...), append(problems, bad...)
	}
	return docs, problems
}

// documents turns one value into its object, or into those of a List.
func documents(v any, origin string) ([]document, []Problem) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, []Problem{{Origin: origin, Text: "the document is no object but " + article(jsonType(v))}}
	}
	if items, ok := m["items"].([]any); ok && strings.HasSuffix(text(m["kind"]), "List") {
		var docs []document
		var problems []Problem
		for i, item := range items {
			more, bad := documents(item, fmt.Sprintf("%s: items[%d]", origin, i))
			docs, problems = append(docs, more...), append(problems, bad...)
		}
		return docs, problems
	}
	u := &unstructured.Unstructured{Object: m}
	for _, f := range []string{"name", "namespace"} { // an unquoted y, on or 1 is none
		if v := dig(m, "metadata", f); v != nil && jsonType(v) != "string" {
			p := Problem{Origin: origin, Path: "metadata." + f, Text: "want string, got " + jsonType(v)}
			if u.GetName() != "" {
				p.Ref = RefOf(u)
			}
			return nil, []Problem{p}
		}
	}
	var lacks []string
	for _, f := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
		if text(dig(m, f...)) == "" {
			lacks = append(lacks, strings.Join(f, "."))
		}
	}
	if _, err := schema.ParseGroupVersion(text(m["apiVersion"])); err != nil {
		return nil, []Problem{{Origin: origin, Path: "apiVersion", Text: err.Error()}}
	}
	if len(lacks) > 0 {
		return nil, []Problem{{Origin: origin, Text: "the object lacks " + strings.Join(lacks, ", ")}}
	}
	list, err := unstructuredOf(u)
	if err != nil {
		return nil, []Problem{{Ref: RefOf(u), Origin: origin, Text: err.Error()}}
	}
	return []document{{list[0], origin}}, nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func article(word string) string {
	if strings.ContainsAny(word[:1], "aeiou") {
		return "an " + word
	}
	return "a " + word
}

// parseJSON reads a stream of JSON values; ok is false when it is none.
func parseJSON(origin string, raw []byte) (values []value, problems []Problem, ok bool) {
	if t := bytes.TrimLeft(raw, " \t\r\n"); len(t) == 0 || t[0] != '{' && t[0] != '[' {
		return nil, nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		var part json.RawMessage
		if err := d.Decode(&part); errors.Is(err, io.EOF) {
			return values, problems, true
		} else if err != nil {
			return nil, nil, false
		}
		line := 1 + bytes.Count(raw[:int(d.InputOffset())-len(part)], []byte("\n"))
		var data any
		repeated, err := strictjson.UnmarshalStrict(part, &data, strictjson.DisallowDuplicateFields)
		if err != nil {
			return nil, nil, false
		}
		for _, r := range repeated {
			problems = append(problems, Problem{Origin: fmt.Sprintf("%s:%d", origin, line), Text: r.Error()})
		}
		values = append(values, value{data, line})
	}
}

// parseYAML reads a stream of YAML documents; empty ones are left out. What cannot be read ends it.
func parseYAML(origin string, raw []byte) (values []value, problems []Problem) {
	d := yamlnode.NewDecoder(bytes.NewReader(raw))
	for {
		var node yamlnode.Node
		err := d.Decode(&node)
		if errors.Is(err, io.EOF) {
			return values, problems
		}
		if err != nil {
			return values, append(problems, yamlProblems(origin, 0, err)...)
		}
		if len(node.Content) == 0 || isEmpty(node.Content[0]) {
			continue
		}
		line := node.Content[0].Line
		problems = append(problems, asJSON(origin, &node)...)
		var data any
		if err := node.Decode(&data); err != nil {
			problems = append(problems, yamlProblems(origin, line, err)...)
			continue
		}
		values = append(values, value{data, line})
	}
}

func isEmpty(n *yamlnode.Node) bool { return n.Kind == yamlnode.ScalarNode && n.ShortTag() == "!!null" }

// yamlProblems turns "line 3: …" of the parser into a place.
func yamlProblems(origin string, line int, err error) []Problem {
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if many := (*yamlnode.TypeError)(nil); errors.As(err, &many) {
		texts = many.Errors
	}
	var problems []Problem
	for _, t := range texts {
		at := line
		var n int
		if _, err := fmt.Sscanf(t, "line %d: ", &n); err == nil {
			at = n
			_, t, _ = strings.Cut(t, ": ")
		}
		place := origin
		if at > 0 {
			place = fmt.Sprintf("%s:%d", origin, at)
		}
		problems = append(problems, Problem{Origin: place, Text: t})
	}
	return problems
}

// oldBooleans are words that YAML 1.1, and with it every Kubernetes tool, reads as booleans and YAML 1.2 as text.
func oldBooleans() (yes, no []string) {
	return []string{"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}, []string{"n", "N", "no", "No", "NO", "off", "Off", "OFF"}
}

// asJSON makes the scalars of a document those that the Kubernetes tools read, and its keys text. A key that is read as something else
// than a whole number is a problem, because its text is not what its writer sees.
func asJSON(origin string, n *yamlnode.Node) []Problem {
	var problems []Problem
	yes, no := oldBooleans()
	plain := n.Kind == yamlnode.ScalarNode && n.Style&^yamlnode.FlowStyle == 0
	switch {
	case plain && n.ShortTag() == "!!str" && slices.Contains(yes, n.Value):
		n.Tag, n.Value = "!!bool", "true"
	case plain && n.ShortTag() == "!!str" && slices.Contains(no, n.Value):
		n.Tag, n.Value = "!!bool", "false"
	case plain && n.ShortTag() == "!!timestamp":
		n.Tag, n.Style = "!!str", yamlnode.DoubleQuotedStyle
	}
	for i, child := range n.Content {
		if n.Kind != yamlnode.MappingNode || i%2 == 1 {
			problems = append(problems, asJSON(origin, child)...)
			continue
		}
		if bad := keyAsText(child); bad != "" {
			problems = append(problems, Problem{Origin: fmt.Sprintf("%s:%d", origin, child.Line), Text: bad})
		}
	}
	return problems
}

// keyAsText makes a key text, or says why it is none.
func keyAsText(key *yamlnode.Node) string {
	yes, no := oldBooleans()
	plain := key.Style&^yamlnode.FlowStyle == 0
	switch {
	case key.Kind == yamlnode.AliasNode:
		return "a key is an alias"
	case key.Kind != yamlnode.ScalarNode:
		return "a key is no text"
	case key.ShortTag() == "!!merge":
		return ""
	case key.ShortTag() == "!!int" || key.ShortTag() == "!!timestamp":
		key.Tag, key.Style = "!!str", yamlnode.DoubleQuotedStyle
	case key.ShortTag() != "!!str" || plain && (slices.Contains(yes, key.Value) || slices.Contains(no, key.Value)):
		return fmt.Sprintf("the key %s is no text; quote it", key.Value)
	}
	return ""
}
