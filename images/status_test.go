package images

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moby/buildkit/client"
	"github.com/moby/buildkit/solver/pb"
	digest "github.com/opencontainers/go-digest"
)

func TestStatusLines(t *testing.T) {
	const a, b = digest.Digest("sha256:a"), digest.Digest("sha256:b")
	now := time.Now()
	long := strings.Repeat("x", maxLogLine)
	logs := func(stream int, parts ...string) []*client.VertexLog {
		var out []*client.VertexLog
		for _, p := range parts {
			out = append(out, &client.VertexLog{Vertex: a, Stream: stream, Data: []byte(p)})
		}
		return out
	}
	cases := []struct {
		name string
		logs []*client.VertexLog
		want []string
	}{
		{"one line in two parts", logs(1, "he", "llo\n"), []string{"hello"}},
		{"two lines in one part", logs(1, "a\nb\n"), []string{"a", "b"}},
		{"an empty line", logs(1, "a\n\nb\n"), []string{"a", "", "b"}},
		{"no newline at the end", logs(1, "a\nb"), []string{"a", "b"}},
		{"progress by carriage return", logs(1, "10%\r50%\r", "100%\n", "done\r\n"), []string{"100%", "done"}},
		{"streams do not mix", append(logs(1, "out"), append(logs(2, "err\n"), logs(1, "put\n")...)...), []string{"err", "output"}},
		{"a line without end", logs(1, long, "yz\n"), []string{long, "yz"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			s := newStatus("ref", func(e Event) {
				if l, ok := e.(Log); ok {
					got = append(got, l.Line)
				}
			})
			s.add(&client.SolveStatus{Vertexes: []*client.Vertex{{Digest: a, Name: "a", Started: &now}, {Digest: b}}, Logs: c.logs})
			s.add(&client.SolveStatus{Vertexes: []*client.Vertex{{Digest: a, Name: "a", Started: &now, Completed: &now}}})
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestStatusKeepsTheEndOfFailedSteps(t *testing.T) {
	s := newStatus("ref", nil)
	add := func(id digest.Digest, failure, output string) {
		s.add(&client.SolveStatus{
			Vertexes: []*client.Vertex{{Digest: id, Error: failure}},
			Logs:     []*client.VertexLog{{Vertex: id, Stream: 1, Data: []byte(output)}},
		})
	}
	add("sha256:ok", "", "fine\n")
	add("sha256:cancelled", "process did not complete: context canceled", "interrupted\n")
	add("sha256:failed", "exit code: 2", strings.Repeat("line\n", logTail)+"last\n")
	_, got := s.failed()
	if len(got) != logTail || got[0] != "line" || got[logTail-1] != "last" {
		t.Errorf("%q", got)
	}
}

func TestStatusSteps(t *testing.T) {
	var got []Event
	s := newStatus("ref", func(e Event) { got = append(got, e) })
	start, end := time.Unix(1, 0), time.Unix(2, 0)
	v := client.Vertex{Digest: "sha256:a", Name: "[1/1] RUN x", Started: &start}
	done := v
	done.Completed, done.Cached = &end, true
	s.add(&client.SolveStatus{Vertexes: []*client.Vertex{&v, &v}}) // a repeated state is told once
	s.add(&client.SolveStatus{Vertexes: []*client.Vertex{&done}, Warnings: []*client.VertexWarning{
		{Short: []byte("old instruction"), URL: "https://docs.test", SourceInfo: &pb.SourceInfo{Filename: "Dockerfile"}, Range: []*pb.Range{{Start: &pb.Position{Line: 3}}}},
		{Short: []byte("somewhere")},
	}})
	s.mute()
	s.add(&client.SolveStatus{Vertexes: []*client.Vertex{{Digest: "sha256:late"}}})
	want := []Event{
		Step{Ref: "ref", ID: "sha256:a", Name: "[1/1] RUN x", Started: start},
		Step{Ref: "ref", ID: "sha256:a", Name: "[1/1] RUN x", Started: start, Completed: end, Cached: true},
		Warning{Ref: "ref", Text: "old instruction", URL: "https://docs.test", File: "Dockerfile", Line: 3},
		Warning{Ref: "ref", Text: "somewhere"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
