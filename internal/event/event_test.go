package event_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jr2.dev/jr2/internal/event"
)

// every holds one value of each type of event.
func every() []event.Event {
	return []event.Event{
		event.EnvApplied{}, event.Started{}, event.PlanStarted{}, event.TypecheckStarted{}, event.TypecheckSkipped{}, event.Noted{}, event.Walked{},
		event.KubernetesFound{}, event.PlatformsResolved{}, event.SandboxNodes{}, event.SizeTooLarge{}, event.KitResolved{},
		event.PriorityClassesNamed{},
		event.NamespaceApplied{}, event.LockWaiting{}, event.ImagesNotNeeded{}, event.ImageFresh{}, event.ImageBuilding{},
		event.BuildProgress{}, event.ImageUser{}, event.ImagePushed{}, event.ImageLoaded{}, event.Applied{}, event.ApplyWaiting{}, event.OperatorLeftAlone{}, event.SecretHeld{}, event.CertificateMade{}, event.ModelsSkipped{}, event.ModelAsked{}, event.ModelAnswered{},
		event.OperatorNotManaged{}, event.RolloutWaiting{}, event.Verified{}, event.AssemblyPublishing{}, event.AssemblyCurrent{},
		event.WorkspacesOnOlderImages{}, event.ReposBound{}, event.Converged{},
		event.DownStarted{}, event.NamespaceDeleting{}, event.NamespaceHeld{}, event.NamespaceGone{}, event.NamespaceStays{}, event.InstanceRemoved{}, event.ObjectWaiting{}, event.OperatorRemoved{},
		event.LeftInPlace{}, event.Removed{},
		event.DeployKeyNeeded{}, event.DeployKeyMade{}, event.DeployKeyReminder{},
		event.RunStarted{}, event.WorkspaceEntered{}, event.PlacingWaiting{}, event.PlacingEnded{}, event.WorkspaceHeld{}, event.SandboxRemoved{},
	}
}

// TestEveryTypeIsHere reads the package's own source, so that a new event cannot be forgotten by the tests of this file.
func TestEveryTypeIsHere(t *testing.T) {
	var here, names []string
	for _, e := range every() {
		here = append(here, reflect.TypeOf(e).Name())
		names = append(names, e.Type())
		if camel := strings.ToLower(reflect.TypeOf(e).Name()[:1]) + reflect.TypeOf(e).Name()[1:]; e.Type() != camel {
			t.Errorf("%T calls itself %q, want %q", e, e.Type(), camel)
		}
	}
	declared := declared(t)
	slices.Sort(here)
	if !slices.Equal(here, declared) {
		t.Errorf("tested   %q\ndeclared %q", here, declared)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(here) {
		t.Error("two types have one name")
	}
}

// declared are the types of this package that have the method Type.
func declared(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil && method.Name.Name == "Type" {
				names = append(names, method.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

var typeFirst = regexp.MustCompile(`^\{"type":"[a-zA-Z]+"[,}]`)

func TestMarshalRoundTrips(t *testing.T) {
	for _, e := range every() {
		full := reflect.New(reflect.TypeOf(e)).Elem()
		fill(t, full)
		line, err := event.Marshal(full.Interface().(event.Event))
		if err != nil {
			t.Errorf("%T: %v", e, err)
			continue
		}
		if !typeFirst.Match(line) || bytes.ContainsRune(line, '\n') {
			t.Errorf("%T: %s", e, line)
		}
		back := reflect.New(reflect.TypeOf(e))
		if err := json.Unmarshal(line, back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), full.Interface()) {
			t.Errorf("%T: %s came back as %+v, %v", e, line, back.Elem(), err)
		}
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil || fields["type"] != e.Type() || len(fields) != full.NumField()+1 {
			t.Errorf("%T: %s has the fields %v", e, line, fields)
		}
	}
}

// TestMarshalOfNothing: an event without any value has lists that are empty, and no null.
func TestMarshalOfNothing(t *testing.T) {
	for _, e := range every() {
		line, err := event.Marshal(e)
		if err != nil || !typeFirst.Match(line) || !json.Valid(line) || bytes.Contains(line, []byte("null")) {
			t.Errorf("%T: %s, %v", e, line, err)
		}
	}
	for want, e := range map[string]event.Event{
		`{"type":"typecheckStarted"}`:                                       event.TypecheckStarted{},
		`{"type":"walked","agents":[],"workflows":["ping"]}`:                event.Walked{Workflows: []string{"ping"}},
		`{"type":"platformsResolved","platforms":[],"nodes":0}`:             event.PlatformsResolved{},
		`{"type":"sandboxNodes","names":[]}`:                                event.SandboxNodes{},
		`{"type":"applied","layer":"operator","unchanged":7}`:               event.Applied{Layer: "operator", Unchanged: 7},
		`{"type":"noted","message":"\"quoted\"\nand a line"}`:               event.Noted{Message: "\"quoted\"\nand a line"},
		`{"type":"assemblyCurrent","hash":"0a","workflows":[]}`:             event.AssemblyCurrent{Hash: "0a"},
		`{"type":"priorityClassesNamed","sandbox":"batch"}`:                 event.PriorityClassesNamed{Sandbox: "batch"},
		`{"type":"imageUser","name":"default","user":""}`:                   event.ImageUser{Name: "default"},
		`{"type":"sizeTooLarge","memory":"","cpu":"","workflows":[]}`:       event.SizeTooLarge{},
		`{"type":"buildProgress","ref":"r:1","status":"done"}`:              event.BuildProgress{Ref: "r:1", Status: "done"},
		`{"type":"lockWaiting","holder":"","since":"0001-01-01T00:00:00Z"}`: event.LockWaiting{},
	} {
		if line, err := event.Marshal(e); err != nil || string(line) != want {
			t.Errorf("got  %s, %v\nwant %s", line, err, want)
		}
	}
}

// fakeEvent is an event of somebody else that JSON has no form for.
type fakeEvent struct{ F func() }

func (fakeEvent) Type() string { return "fake" }

func TestMarshalNamesWhatFailed(t *testing.T) {
	if _, err := event.Marshal(fakeEvent{}); err == nil || !strings.HasPrefix(err.Error(), "event fake: ") {
		t.Errorf("got %v", err)
	}
}

func TestMarshalLeavesTheEventAlone(t *testing.T) {
	e := event.Walked{}
	if _, err := event.Marshal(e); err != nil || e.Agents != nil {
		t.Errorf("got %v, %v", e, err)
	}
	if line, err := event.Marshal(&pointed{}); err != nil || string(line) != `{"type":"pointed","names":["a"]}` {
		t.Errorf("got %s, %v", line, err)
	}
}

// pointed is an event with a form of its own.
type pointed struct{}

func (*pointed) Type() string                 { return "pointed" }
func (*pointed) MarshalJSON() ([]byte, error) { return []byte(`{"names":["a"]}`), nil }

// fill gives every field a value that is not its zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.String:
		v.SetString("text")
	case reflect.Int:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a %s: say here what fills it", v.Type())
	}
}
