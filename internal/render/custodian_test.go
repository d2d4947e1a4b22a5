package render

import (
	"encoding/json"
	"strings"
	"testing"

	"jr2.dev/jr2/internal/names"
)

// The Custodian answers the kubelet on every address, and the Harness on the loopback address alone; it leads to the Orchestrator
// of its namespace and has no admin listener.
func TestCustodianBootstrap(t *testing.T) {
	var bootstrap struct {
		Admin  any `json:"admin"`
		Static struct {
			Listeners []struct {
				Name    string `json:"name"`
				Address struct {
					Socket struct {
						Address string `json:"address"`
						Port    int    `json:"port_value"`
					} `json:"socket_address"`
				} `json:"address"`
			} `json:"listeners"`
		} `json:"static_resources"`
	}
	text := custodianBootstrap("team-review")
	if err := json.Unmarshal([]byte(text), &bootstrap); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, l := range bootstrap.Static.Listeners {
		got[l.Name] = [2]any{l.Address.Socket.Address, l.Address.Socket.Port}
	}
	if got["health"] != [2]any{"0.0.0.0", names.CustodianHealthPort} || got["control"] != [2]any{"127.0.0.1", names.CustodianControlPort} || len(got) != 2 {
		t.Errorf("listeners %v", got)
	}
	if bootstrap.Admin != nil || !strings.Contains(text, `"jr2-orchestrator.team-review.svc"`) {
		t.Error("an admin listener, or no way to the Orchestrator")
	}
}
