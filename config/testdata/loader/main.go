// Command loader loads the Instance folders that it is told, one after another, as a library would. The test that starts it watches what it
// opens. For each folder it writes one line of JSON, and one more at the end with the most memory that it had at once, in bytes.
package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"jr2.dev/jr2/config"
)

// What a platform might give a stranger's folder.
const (
	limit  = 3 * time.Second
	memory = 64 << 20
)

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, dir := range os.Args[1:] {
		began := time.Now()
		inst, err := config.Load(context.Background(), config.LoadOptions{Dir: dir, Timeout: limit, MemoryLimit: memory})
		said := ""
		if err != nil {
			said = err.Error()
		}
		if inst != nil {
			if _, err := inst.CABundle(); err != nil {
				said += " " + err.Error()
			}
		}
		if _, err := config.ReadDotEnv(filepath.Join(dir, config.EnvFile)); err != nil {
			said += " " + err.Error()
		}
		debug.FreeOSMemory() // the next folder is judged alone
		_ = out.Encode(map[string]any{"dir": dir, "seconds": time.Since(began).Seconds(), "said": said})
	}
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if kilobytes, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			most, _ := strconv.ParseInt(strings.Fields(kilobytes)[0], 10, 64)
			_ = out.Encode(map[string]int64{"memory": most << 10})
		}
	}
}
