package render

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// A request as the script sees it, and what it makes of it.
type swapping struct {
	path    string
	headers map[string][]string
	status  string // of the answer, where the script answers itself
	body    string
}

// swapped runs the script over a request, as Envoy would: with the secrets of the route and the files of values.
func swapped(t *testing.T, values map[string]string, held []boundSecret, request swapping) swapping {
	t.Helper()
	dir := t.TempDir()
	for name, value := range values {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.Replace(custodianScript, `"`+custodianValuesDir+`/"`, `"`+dir+`/"`, 1)
	if script == custodianScript {
		t.Fatal("the script does not read the values where the volume is mounted")
	}
	l := lua.NewState()
	defer l.Close()
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	if err := l.CallByParam(lua.P{Fn: l.GetGlobal("envoy_on_request"), Protect: true}, handleOf(l, held, &request)); err != nil {
		t.Fatal(err)
	}
	return request
}

// methods makes an object whose functions take it as their first argument.
func methods(l *lua.LState, all map[string]lua.LGFunction) *lua.LTable {
	table := l.NewTable()
	l.SetFuncs(table, all)
	return table
}

func handleOf(l *lua.LState, held []boundSecret, request *swapping) *lua.LTable {
	headers := methods(l, map[string]lua.LGFunction{
		"get": func(l *lua.LState) int {
			if l.CheckString(2) == ":path" {
				l.Push(lua.LString(request.path))
			} else {
				l.Push(lua.LNil)
			}
			return 1
		},
		"getNumValues": func(l *lua.LState) int { l.Push(lua.LNumber(len(request.headers[l.CheckString(2)]))); return 1 },
		"getAtIndex": func(l *lua.LState) int {
			l.Push(lua.LString(request.headers[l.CheckString(2)][l.CheckInt(3)]))
			return 1
		},
		"remove": func(l *lua.LState) int { delete(request.headers, l.CheckString(2)); return 0 },
		"add": func(l *lua.LState) int {
			name := l.CheckString(2)
			request.headers[name] = append(request.headers[name], l.CheckString(3))
			return 0
		},
	})
	metadata := methods(l, map[string]lua.LGFunction{"get": func(l *lua.LState) int { l.Push(heldTable(l, held)); return 1 }})
	give := func(v lua.LValue) lua.LGFunction { return func(l *lua.LState) int { l.Push(v); return 1 } }
	return methods(l, map[string]lua.LGFunction{
		"headers": give(headers), "metadata": give(metadata),
		"respond": func(l *lua.LState) int {
			request.status, request.body = l.CheckTable(2).RawGetString(":status").String(), l.CheckString(3)
			return 0
		},
	})
}

func heldTable(l *lua.LState, held []boundSecret) lua.LValue {
	if held == nil {
		return lua.LNil
	}
	list := func(texts []string) *lua.LTable {
		t := l.NewTable()
		for _, text := range texts {
			t.Append(lua.LString(text))
		}
		return t
	}
	all := l.NewTable()
	for _, secret := range held {
		t := l.NewTable()
		t.RawSetString("name", lua.LString(secret.Name))
		t.RawSetString("standIn", lua.LString(secret.StandIn))
		t.RawSetString("headers", list(secret.Headers))
		if secret.Paths != nil {
			t.RawSetString("paths", list(secret.Paths))
		}
		all.Append(t)
	}
	return all
}

func basicOf(text string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(text))
}

func TestSwap(t *testing.T) {
	t.Parallel()
	key := boundSecret{Name: "KEY", StandIn: "jr2-held-KEY", Headers: []string{"authorization", "x-api-key"}}
	second := boundSecret{Name: "KEY_2", StandIn: "jr2-held-KEY_2", Headers: []string{"authorization"}}
	values := map[string]string{"KEY": "s3cret%1", "KEY_2": "other"}
	both := []boundSecret{key, second}
	for what, c := range map[string]struct {
		held   []boundSecret
		header string
		in     []string
		want   []string
	}{
		"bearer":                        {both, "authorization", []string{"Bearer jr2-held-KEY"}, []string{"Bearer s3cret%1"}},
		"alone":                         {both, "x-api-key", []string{"jr2-held-KEY"}, []string{"s3cret%1"}},
		"a name that begins as another": {both, "authorization", []string{"Bearer jr2-held-KEY_2"}, []string{"Bearer other"}},
		"both in one":                   {both, "authorization", []string{"jr2-held-KEY jr2-held-KEY_2 jr2-held-KEY"}, []string{"s3cret%1 other s3cret%1"}},
		"the second of two":             {both, "x-api-key", []string{"mine", "jr2-held-KEY"}, []string{"mine", "s3cret%1"}},
		"a part of a longer word":       {both, "authorization", []string{"xjr2-held-KEY", "jr2-held-KEYS", "a_jr2-held-KEY"}, []string{"xjr2-held-KEY", "jr2-held-KEYS", "a_jr2-held-KEY"}},
		"a header that is not listed":   {both, "x-other", []string{"jr2-held-KEY"}, []string{"jr2-held-KEY"}},
		"of a header of another secret": {both, "x-api-key", []string{"jr2-held-KEY_2"}, []string{"jr2-held-KEY_2"}},
		"nothing held on this route":    {nil, "authorization", []string{"Bearer jr2-held-KEY"}, []string{"Bearer jr2-held-KEY"}},
		"basic, as a password":          {both, "authorization", []string{basicOf("git:jr2-held-KEY")}, []string{basicOf("git:s3cret%1")}},
		"basic, as a user":              {both, "authorization", []string{basicOf("jr2-held-KEY:")}, []string{basicOf("s3cret%1:")}},
		"basic, of another":             {both, "authorization", []string{basicOf("git:jr2-held-KEYS")}, []string{basicOf("git:jr2-held-KEYS")}},
		"no base64":                     {both, "authorization", []string{"Basic ###"}, []string{"Basic ###"}},
		"no such header":                {both, "authorization", nil, nil},
	} {
		t.Run(what, func(t *testing.T) {
			got := swapped(t, values, c.held, swapping{path: "/v1/x?y", headers: map[string][]string{c.header: c.in}})
			if strings.Join(got.headers[c.header], "|") != strings.Join(c.want, "|") || got.status != "" {
				t.Errorf("got %q, status %q", got.headers[c.header], got.status)
			}
		})
	}
}

// TestBasicOfEveryLength: base64 in both directions, for all remainders.
func TestBasicOfEveryLength(t *testing.T) {
	t.Parallel()
	held := []boundSecret{{Name: "KEY", StandIn: "jr2-held-KEY", Headers: []string{"authorization"}}}
	for n := range 7 {
		user, value := strings.Repeat("u", n), strings.Repeat("v~", n+1)
		got := swapped(t, map[string]string{"KEY": value}, held, swapping{headers: map[string][]string{"authorization": {basicOf(user + ":jr2-held-KEY")}}})
		if want := basicOf(user + ":" + value); got.headers["authorization"][0] != want {
			t.Errorf("got %s, want %s", got.headers["authorization"][0], want)
		}
	}
}

func TestSwapOnPaths(t *testing.T) {
	t.Parallel()
	held := []boundSecret{{Name: "KEY", StandIn: "jr2-held-KEY", Headers: []string{"x-token"}, Paths: []string{"/api/", "/v1/chat"}}}
	for path, want := range map[string]bool{
		"/api/": true, "/api/x?q=/../": true, "/v1/chat": true, "/v1/chat/completions": true, "/v1/chat?x": true,
		"/": false, "/api": false, "/v1/chats": false, "/v1/": false, "/other?/api/": false,
		"/api/../admin": false, "/api/%2e%2E/admin": false, "/api/;/x": false, `/api/\x`: false, "/api//x": false, "/api/%2Fx": false, "/api/%5c": false,
	} {
		got := swapped(t, map[string]string{"KEY": "v"}, held, swapping{path: path, headers: map[string][]string{"x-token": {"jr2-held-KEY"}}})
		if (got.headers["x-token"][0] == "v") != want || got.status != "" {
			t.Errorf("%s: %q, status %q", path, got.headers["x-token"], got.status)
		}
	}
}

// TestValuesThatCannotTravel: the client learns which secret it is and why, and no part of the value.
func TestValuesThatCannotTravel(t *testing.T) {
	t.Parallel()
	held := []boundSecret{{Name: "KEY", StandIn: "jr2-held-KEY", Headers: []string{"x-token"}}}
	for value, want := range map[string]string{
		"secret\n": "", "secret\r\n": "", "secret\nsecond": "",
		"": "custodian: the value of KEY is empty\n", "\n": "custodian: the value of KEY is empty\n",
		"sec\x00ret": "custodian: the value of KEY holds a byte that is no printable ASCII\n", "sécret": "custodian: the value of KEY holds a byte that is no printable ASCII\n",
	} {
		got := swapped(t, map[string]string{"KEY": value}, held, swapping{headers: map[string][]string{"x-token": {"jr2-held-KEY"}}})
		if got.body != want || (want != "") != (got.status == "503") || want == "" && got.headers["x-token"][0] != "secret" || want != "" && got.headers["x-token"][0] != "jr2-held-KEY" {
			t.Errorf("%q: %q, status %q, body %q", value, got.headers["x-token"], got.status, got.body)
		}
	}
	got := swapped(t, nil, held, swapping{headers: map[string][]string{"x-token": {"jr2-held-KEY"}}})
	if got.body != "custodian: the value of KEY is not there\n" {
		t.Errorf("body %q", got.body)
	}
	if got := swapped(t, nil, held, swapping{headers: map[string][]string{"x-token": {"mine"}}}); got.status != "" {
		t.Errorf("a request without the stand-in is answered %s", got.status)
	}
}
