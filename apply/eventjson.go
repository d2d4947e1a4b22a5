package apply

import (
	"encoding/json"
	"fmt"
	"time"
)

// EventVersion is the version of the JSON form of events. It grows when a field changes its meaning; new types and fields do not change it.
const EventVersion = 1

// MarshalEvent writes an event as one JSON object whose first field, "type", tells which it is:
//
//	{"type":"waveStarted","phase":"Sync","wave":-2,"objects":7}
//	{"type":"applied","ref":{…},"action":"created"}
//	{"type":"removed","ref":{…},"action":"kept","why":"it holds data; …"}
//	{"type":"hookStarted","ref":{…},"phase":"Sync","joined":true}
//	{"type":"unready","ref":{…},"done":false,"message":"1 of 3 …","waitsOn":"node"}
//	{"type":"waiting","ref":{…},"reason":"…","since":"…"}
//	{"type":"retrying","ref":{…},"class":"…","error":"…","inSeconds":0.5}
//	{"type":"progress","workload":"Deployment demo/web","done":false,"message":"…"}
//	{"type":"lockHeld","lock":"demo/jr2-apply-web","holder":"…","since":"…"}
//	{"type":"warned","ref":{…},"text":"…"}
func MarshalEvent(e Event) ([]byte, error) {
	shape, err := shapeOf(e)
	if err != nil {
		return nil, err
	}
	return json.Marshal(shape)
}

func shapeOf(e Event) (any, error) {
	switch e := e.(type) {
	case WaveStarted:
		return struct {
			Type    string `json:"type"`
			Phase   Phase  `json:"phase"`
			Wave    int    `json:"wave"`
			Objects int    `json:"objects"`
		}{"waveStarted", e.Phase, e.Wave, e.Objects}, nil
	case Applied:
		return deedJSON{"applied", e.Ref, e.Action, ""}, nil
	case Removed:
		return deedJSON{"removed", e.Ref, e.Action, e.Why}, nil
	case HookStarted:
		return struct {
			Type   string `json:"type"`
			Ref    Ref    `json:"ref"`
			Phase  Phase  `json:"phase"`
			Joined bool   `json:"joined,omitempty"`
		}{"hookStarted", e.Ref, e.Phase, e.Joined}, nil
	case Unready:
		return struct {
			Type string `json:"type"`
			Ref  Ref    `json:"ref"`
			statusJSON
		}{"unready", e.Ref, statusShape(e.Status)}, nil
	case Progress:
		return struct {
			Type     string `json:"type"`
			Workload string `json:"workload"`
			statusJSON
		}{"progress", e.Workload.String(), statusShape(e.Status)}, nil
	case Warned:
		return struct {
			Type string `json:"type"`
			Ref  Ref    `json:"ref"`
			Text string `json:"text"`
		}{"warned", e.Ref, e.Text}, nil
	}
	return shapeOfPause(e)
}

// shapeOfPause is the shape of what keeps an Apply from going on.
func shapeOfPause(e Event) (any, error) {
	switch e := e.(type) {
	case Waiting:
		return struct {
			Type   string    `json:"type"`
			Ref    Ref       `json:"ref"`
			Reason string    `json:"reason"`
			Since  time.Time `json:"since"`
		}{"waiting", e.Ref, e.Reason, e.Since}, nil
	case Retrying:
		return struct {
			Type  string  `json:"type"`
			Ref   Ref     `json:"ref"`
			Class Class   `json:"class"`
			Error string  `json:"error"`
			In    float64 `json:"inSeconds"`
		}{"retrying", e.Ref, e.Class, e.Err.Error(), e.In.Seconds()}, nil
	case LockHeld:
		return struct {
			Type   string    `json:"type"`
			Lock   string    `json:"lock"`
			Holder string    `json:"holder"`
			Since  time.Time `json:"since"`
		}{"lockHeld", e.Namespace + "/" + e.Name, e.Holder, e.Since}, nil
	}
	return nil, fmt.Errorf("event %T has no JSON form", e)
}

type deedJSON struct {
	Type   string `json:"type"`
	Ref    Ref    `json:"ref"`
	Action Action `json:"action"`
	Why    string `json:"why,omitempty"`
}

// statusJSON is a Status without what only the wait itself needs.
type statusJSON struct {
	Done    bool    `json:"done"`
	Failed  bool    `json:"failed,omitempty"`
	Message string  `json:"message,omitempty"`
	Note    string  `json:"note,omitempty"`
	On      WaitsOn `json:"waitsOn,omitempty"`
}

func statusShape(s Status) statusJSON { return statusJSON{s.Done, s.Failed, s.Message, s.Note, s.On} }
