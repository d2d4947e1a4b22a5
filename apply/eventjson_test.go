package apply_test

import (
	"errors"
	"testing"
	"time"

	"jr2.dev/jr2/apply"
)

// TestMarshalEvent knows every event: one that is new has no JSON form until somebody says which.
func TestMarshalEvent(t *testing.T) {
	web := apply.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "demo", Name: "web"}
	const ref = `"ref":{"group":"apps","version":"v1","kind":"Deployment","namespace":"demo","name":"web"}`
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, event := range map[string]apply.Event{
		`{"type":"waveStarted","phase":"Sync","wave":-2,"objects":7}`:                                          apply.WaveStarted{Phase: apply.Sync, Wave: -2, Objects: 7},
		`{"type":"applied",` + ref + `,"action":"created"}`:                                                    apply.Applied{Ref: web, Action: apply.Created},
		`{"type":"removed",` + ref + `,"action":"kept","why":"it holds data"}`:                                 apply.Removed{Ref: web, Action: apply.Kept, Why: "it holds data"},
		`{"type":"hookStarted",` + ref + `,"phase":"PreSync"}`:                                                 apply.HookStarted{Ref: web, Phase: apply.PreSync},
		`{"type":"unready",` + ref + `,"done":false,"message":"1 of 3","waitsOn":"node"}`:                      apply.Unready{Ref: web, Status: apply.Status{Message: "1 of 3", On: apply.OnNode}},
		`{"type":"waiting",` + ref + `,"reason":"quota","since":"2026-01-02T03:04:05Z"}`:                       apply.Waiting{Ref: web, Reason: "quota", Since: at},
		`{"type":"retrying",` + ref + `,"class":"transport","error":"reset","inSeconds":0.5}`:                  apply.Retrying{Ref: web, Class: "transport", Err: errors.New("reset"), In: time.Second / 2},
		`{"type":"progress","workload":"Deployment demo/web","done":true,"message":"rolled out"}`:              apply.Progress{Workload: apply.Workload{Kind: "Deployment", Namespace: "demo", Name: "web"}, Status: apply.Status{Done: true, Message: "rolled out"}},
		`{"type":"lockHeld","lock":"demo/jr2-apply-web","holder":"ana@laptop","since":"2026-01-02T03:04:05Z"}`: apply.LockHeld{Namespace: "demo", Name: "jr2-apply-web", Holder: "ana@laptop", Since: at},
		`{"type":"warned",` + ref + `,"text":"it is deprecated"}`:                                              apply.Warned{Ref: web, Text: "it is deprecated"},
	} {
		got, err := apply.MarshalEvent(event)
		if err != nil || string(got) != want {
			t.Errorf("%T: %v\ngot  %s\nwant %s", event, err, got, want)
		}
	}
	if _, err := apply.MarshalEvent(nil); err == nil {
		t.Error("nothing has a JSON form")
	}
}
