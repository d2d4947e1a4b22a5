package apply

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// Values have the same canonical form when they are the same value, and only then: neighbours that a careless form would take for one
// another, and pairs that are made at random from few parts, so that equal ones and near misses come up often.
func TestCanonicalFormsTellValuesApart(t *testing.T) {
	values := []any{
		nil, true, false, "", "0", int64(0), 0.5, int64(1), "1", []any{}, map[string]any{}, []any{nil}, []any{[]any{}}, []any{"a", "b"}, []any{"ab"}, []any{"ab", ""}, []any{"", "ab"},
		map[string]any{"a": nil}, map[string]any{"a": "b"}, map[string]any{"a": map[string]any{}}, map[string]any{"a": "", "b": ""}, map[string]any{"a": []any{"b"}},
		map[string]any{"a": map[string]any{"b": int64(1)}, "c": int64(2)}, map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}}, strings.Repeat("m", 300),
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		values = append(values, randomValue(r, 3))
	}
	forms := make([]string, len(values))
	for i, v := range values {
		raw, err := appendCanonical(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		forms[i] = string(raw)
	}
	equal := 0
	for i := range values {
		for j := range i {
			same := reflect.DeepEqual(values[i], values[j])
			if same != (forms[i] == forms[j]) {
				t.Errorf("%v and %v: equal values %t", values[i], values[j], same)
			}
			if same {
				equal++
			}
		}
	}
	if equal < 100 {
		t.Errorf("only %d pairs are equal, which shows too little", equal)
	}
	if _, err := appendCanonical(nil, map[string]any{"a": []any{json.Number("1")}}); err == nil || err.Error() != "a: [0]: json.Number is no type of JSON" {
		t.Errorf("got %v", err)
	}
}

func randomValue(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(3) == 0 {
		return []any{nil, true, int64(r.IntN(2)), "", "a", "ab", 1.5}[r.IntN(7)]
	}
	if r.IntN(2) == 0 {
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for range r.IntN(3) {
		m[[]string{"a", "b", "ab"}[r.IntN(3)]] = randomValue(r, depth-1)
	}
	return m
}
