package event_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"jr2.dev/jr2/internal/event"
	"jr2.dev/jr2/internal/narrate"
	"jr2.dev/jr2/internal/terminal"
)

// nasty is what somebody might choose as a name to clear a screen, to forge a line, or to hide what stands there.
const nasty = "n\x1b[2J\r\nerror: forged\u202e\u009b\u200b\x7f\u2028x\xff"

// TestTextOfOthersStaysOnItsLine feeds every event with text of somebody who means harm, in every field.
func TestTextOfOthersStaysOnItsLine(t *testing.T) {
	for _, e := range every() {
		plain, harmful := filled(e, "n"), filled(e, nasty)
		lines := narrate.Lines(harmful)
		if want := narrate.Lines(plain); len(lines) != len(want) {
			t.Errorf("%T has %d lines with harmful text, and %d without:\n%q", e, len(lines), len(want), lines)
		}
		var shown strings.Builder
		narrate.To(&shown)(harmful)
		if n := strings.Count(shown.String(), "\n"); n != len(lines) {
			t.Errorf("%T: %d lines were written, want %d", e, n, len(lines))
		}
		if i := strings.IndexFunc(shown.String(), unsafe); i >= 0 {
			t.Errorf("%T: %q is written as it is", e, shown.String()[i:])
		}
		text, err := event.Marshal(harmful)
		if err != nil {
			t.Errorf("%T: %v", e, err)
			continue
		}
		safe := terminal.Text(string(text))
		if !json.Valid([]byte(safe)) || strings.ContainsFunc(safe, unsafe) || strings.Contains(safe, "\n") {
			t.Errorf("%T as JSON: %q", e, safe)
		}
	}
}

func TestAnErrorForgesNoLine(t *testing.T) {
	text := narrate.Error(errors.New("it said: " + nasty))
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[0], "error: it said") || strings.ContainsFunc(text, unsafe) ||
		slices.ContainsFunc(lines[1:], func(line string) bool { return !strings.HasPrefix(line, "  ") }) {
		t.Errorf("%q", text)
	}
}

func unsafe(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u200b' || r == '\u2028' || r == unicode.ReplacementChar)
}

// filled is an event of the type with text in every field that can hold some, and one item in every list.
func filled(e event.Event, text string) event.Event {
	value := reflect.New(reflect.TypeOf(e)).Elem()
	fillWith(value, text)
	return value.Interface().(event.Event)
}

func fillWith(value reflect.Value, text string) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(text)
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range value.NumField() {
			if value.Type().Field(i).IsExported() {
				fillWith(value.Field(i), text)
			}
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fillWith(value.Index(0), text)
	case reflect.Map:
		item := reflect.New(value.Type().Elem()).Elem()
		fillWith(item, text)
		key := reflect.New(value.Type().Key()).Elem()
		fillWith(key, text)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, item)
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fillWith(value.Elem(), text)
	case reflect.Int, reflect.Int32, reflect.Int64:
		value.SetInt(1)
	case reflect.Interface:
		if value.Type() == reflect.TypeFor[error]() {
			value.Set(reflect.ValueOf(errors.New(text)))
		}
	}
}
