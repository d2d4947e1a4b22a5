package jr2_test

import (
	"slices"
	"strings"
	"testing"

	"jr2.dev/jr2"
	"jr2.dev/jr2/preflight"
)

// The first line says what was looked at, and the last one claims nothing of what nobody asked for or looked at.
func TestTheReportSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	warn := []preflight.Finding{{Severity: preflight.Warn, Code: "a", Object: "x", Message: "m"}}
	refuse := []preflight.Finding{{Severity: preflight.Refuse, Code: "a", Object: "x", Message: "m"}}
	at := func(r jr2.Report) jr2.Report {
		r.Instance, r.Context, r.Namespace, r.Kubernetes = "app", "shared", "team", "v1.36.1"
		return r
	}
	const known = `jr2 check — instance "app" → context shared / namespace team, Kubernetes v1.36.1`
	for _, tt := range []struct {
		report      jr2.Report
		first, last string
	}{
		{at(jr2.Report{}), known, "nothing stands in the way"},
		{jr2.Report{}, "jr2 check", "nothing stands in the way"},
		{jr2.Report{Instance: "app"}, `jr2 check — instance "app"`, "nothing stands in the way"},
		{at(jr2.Report{Findings: warn}), known, "0 to refuse, 1 to warn of, 0 to note"},
		{at(jr2.Report{Only: []string{"a", "b"}}), known, "nothing of what was asked for stands in the way: only a, b"},
		{at(jr2.Report{Skip: []string{"c"}, Findings: warn}), known, "0 to refuse, 1 to warn of, 0 to note, of what was asked for: without c"},
		{at(jr2.Report{Only: []string{"a"}, Skip: []string{"c"}}), known, "nothing of what was asked for stands in the way: only a, without c"},
		{at(jr2.Report{Unlooked: []string{"objects"}, Findings: refuse}), known,
			"1 to refuse, 0 to warn of, 0 to note — the rest was not looked at (1 look): check again when what refuses is mended"},
		{at(jr2.Report{Unlooked: []string{"objects", "pulls"}, Only: []string{"b"}}), known, "nothing of what was asked for was found: only b — the rest was not looked at (2 looks)"},
		{at(jr2.Report{Unlooked: []string{"objects", "pulls"}}), known, "nothing was found — the rest was not looked at (2 looks)"},
	} {
		lines := strings.Split(strings.TrimRight(tt.report.String(), "\n"), "\n")
		if lines[0] != tt.first || lines[len(lines)-1] != tt.last {
			t.Errorf("got\n%s\nwant first %s\nand last  %s", tt.report.String(), tt.first, tt.last)
		}
	}
}

// A check tells what it was asked for, and which looks were left out because others failed.
func TestCheckTellsWhatItDidNotLookAt(t *testing.T) {
	t.Parallel()
	w := theWorld(t, node("a"))
	plain := folder(t, map[string]string{"jr2.config.ts": plainConfig, "workflows/ping.ts": ping})
	one := preflight.Choice{Only: []string{preflight.CodeSecretMissing}}
	whole := w.check(t, plain, one, into("reported"))
	lines := strings.Split(strings.TrimRight(whole.String(), "\n"), "\n")
	if want := `jr2 check — instance "my-instance" → context shared / namespace reported, Kubernetes ` + whole.Kubernetes; lines[0] != want || len(whole.Unlooked) > 0 || !slices.Equal(whole.Only, one.Only) ||
		!strings.HasSuffix(lines[len(lines)-1], "only "+preflight.CodeSecretMissing) || strings.Contains(whole.String(), "nothing stands in the way") {
		t.Errorf("a choice: left out %v\n%s", whole.Unlooked, whole)
	}
	unread := w.check(t, t.TempDir(), one, into("reported"))
	if !slices.Contains(unread.Unlooked, "connect") || !slices.Contains(unread.Unlooked, "workloads") || slices.Contains(unread.Unlooked, "instance") ||
		!strings.Contains(unread.String(), " — the rest was not looked at (") {
		t.Errorf("without an Instance: left out %v\n%s", unread.Unlooked, unread)
	}
	lost := w.check(t, plain, preflight.Choice{}, into("reported"), func(o *jr2.Options) { o.Config.Host = "https://127.0.0.1:1" })
	if !slices.Contains(lost.Unlooked, "home") || slices.Contains(lost.Unlooked, "types") || !strings.HasPrefix(lost.String(), `jr2 check — instance "my-instance" → context shared / namespace reported`+"\n") {
		t.Errorf("without a server: left out %v\n%s", lost.Unlooked, lost)
	}
}
