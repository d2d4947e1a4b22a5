package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// shortestLiteral is the shortest value, in characters, that LiteralSecrets looks for: shorter ones stand in any text by chance.
const shortestLiteral = 6

// LiteralSecrets lists the fields whose secret value stands literally in the source of a module: "secrets[0].value",
// "harness.provider.apiKey", "harness.env[1].value", in this order. The modules travel in the clear in the Assembly's ConfigMap, so
// such a value should come from the environment instead. Values of fewer than 6 characters are not looked for, and a value that code
// puts together from parts is not found. Nil when there is none. The values themselves are never part of the result.
func (i *Instance) LiteralSecrets() []string {
	var found []string
	look := func(value Secret, path string) {
		if utf8.RuneCountInString(value.Reveal()) >= shortestLiteral && i.inModules(value.Reveal()) {
			found = append(found, path)
		}
	}
	for n, held := range i.Secrets {
		look(held.Value, fmt.Sprintf("secrets[%d].value", n))
	}
	if i.Harness.Provider != nil {
		look(i.Harness.Provider.APIKey, "harness.provider.apiKey")
	}
	for n, variable := range i.Harness.Env {
		look(variable.Value, fmt.Sprintf("harness.env[%d].value", n))
	}
	return found
}

// inModules says whether a source holds a text, in one of the spellings that a string of JavaScript has.
func (i *Instance) inModules(text string) bool {
	for _, spelling := range spellings(text) {
		for _, module := range i.Modules {
			if bytes.Contains(module.Source, []byte(spelling)) {
				return true
			}
		}
	}
	return false
}

// spellings are the text as it is and as the three kinds of quotes want it written.
func spellings(text string) []string {
	var b strings.Builder
	writer := json.NewEncoder(&b)
	writer.SetEscapeHTML(false)
	if err := writer.Encode(text); err != nil {
		return []string{text}
	}
	double := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
	bare := strings.ReplaceAll(double, `\"`, `"`)
	lines := strings.ReplaceAll(bare, `\n`, "\n")
	return []string{
		text, double, bare, strings.ReplaceAll(bare, `'`, `\'`),
		strings.NewReplacer("`", "\\`", "${", "\\${").Replace(bare),
		strings.NewReplacer("`", "\\`", "${", "\\${").Replace(lines),
	}
}
