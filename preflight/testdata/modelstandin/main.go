// Command modelstandin stands for the two images of a model probe: called as "node" it is the Harness image's node, which is asked by
// $JR2_MODEL_PROBE and answers in the termination message; called otherwise it is the Custodian's Envoy, which answers the kubelet.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func main() {
	act := custodian
	if filepath.Base(os.Args[0]) == "node" {
		act = harness
	}
	if err := act(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		_ = os.WriteFile("/dev/termination-log", []byte(err.Error()), 0o644)
		os.Exit(1)
	}
}

// custodian serves health when its configuration is there: after some time, so that a Harness which does not wait is found out.
func custodian() error {
	if len(os.Args) < 3 || os.Args[1] != "-c" {
		return fmt.Errorf("arguments %q", os.Args)
	}
	if _, err := os.Stat(os.Args[2]); err != nil {
		return err
	}
	time.Sleep(time.Second)
	http.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	return http.ListenAndServe(":15021", nil)
}

type question struct{ API, BaseURL, Model, Answer string }

func harness() error {
	var q question
	if err := json.Unmarshal([]byte(os.Getenv("JR2_MODEL_PROBE")), &q); err != nil {
		return err
	}
	for _, name := range []string{"JR2_HARNESS_JSON", "LITERAL", "JR2_SANDBOX_TOKEN"} {
		if os.Getenv(name) == "" {
			return fmt.Errorf("%s is not set", name)
		}
	}
	health, err := http.Get("http://127.0.0.1:15021/healthz")
	if err != nil {
		return err
	}
	health.Body.Close()
	answer := map[string]any{"status": 0}
	if err := ask(q, answer); err != nil {
		answer["error"] = err.Error()
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return os.WriteFile(q.Answer, raw, 0o644)
}

func ask(q question, answer map[string]any) error {
	client := http.Client{Timeout: 10 * time.Second}
	body, err := json.Marshal(map[string]any{"model": q.Model, "max_tokens": 1024, "tools": []string{"report"}})
	if err != nil {
		return err
	}
	reply, err := client.Post(q.BaseURL+"/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	answer["status"], answer["text"], answer["tool"] = reply.StatusCode, string(text), bytes.Contains(text, []byte("tool_calls"))
	return err
}
