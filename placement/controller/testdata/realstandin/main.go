// Command realstandin stands for the programs of two images: called as "node" it is the Harness, which answers on port 8080 with what it sees of
// its pod; called as "envoy" it is the Custodian, which answers the kubelet, and its own pod with what it sees.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	act := custodian
	if filepath.Base(os.Args[0]) == "node" {
		act = harness
	}
	if err := act(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// harness is "node --version" or "node MAIN".
func harness() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("arguments %q", os.Args)
	}
	if os.Args[1] == "--version" {
		fmt.Println("v0.0.0-stand-in")
		return nil
	}
	return serve(":8080", func() (map[string]any, error) {
		runtime, err := os.ReadFile(os.Args[1])
		if err != nil {
			return nil, err
		}
		groups, err := os.Getgroups()
		if err != nil {
			return nil, err
		}
		var shm syscall.Statfs_t
		if err := syscall.Statfs("/dev/shm", &shm); err != nil {
			return nil, err
		}
		env := map[string]string{}
		for _, pair := range os.Environ() {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		written := map[string]string{}
		repos, _ := filepath.Glob("/repos/*") // the pattern is sound
		for _, dir := range append(repos, "/work", "/opt/jr2", "/dev/shm", cmp.Or(env["HOME"], "/")) {
			written[dir] = write(dir)
		}
		there := map[string]bool{}
		for _, path := range []string{"/var/run/secrets", "/etc/jr2/custodian", "/opt/jr2/opt"} {
			_, err := os.Stat(path)
			there[path] = err == nil
		}
		beside, err := ask(env["JR2_CUSTODIAN_URL"])
		return map[string]any{
			"Runtime": string(runtime), "UID": os.Getuid(), "Groups": groups, "SharedMemory": int64(shm.Blocks) * shm.Bsize,
			"Env": env, "Written": written, "There": there, "Custodian": beside,
		}, err
	})
}

// custodian is "envoy -c CONFIG …".
func custodian() error {
	if len(os.Args) < 3 || os.Args[1] != "-c" {
		return fmt.Errorf("arguments %q", os.Args)
	}
	config, err := os.ReadFile(os.Args[2])
	if err != nil {
		return err
	}
	token, err := os.ReadFile("/etc/jr2/custodian/values/JR2_SANDBOX_TOKEN")
	if err != nil {
		return err
	}
	hash := sha256.Sum256(token)
	failed := make(chan error, 2)
	go func() { failed <- serve(":15021", func() (map[string]any, error) { return nil, nil }) }()
	go func() {
		failed <- serve("127.0.0.1:8081", func() (map[string]any, error) {
			return map[string]any{"TokenSHA256": hex.EncodeToString(hash[:]), "Config": json.Valid(config), "Root": write("/")}, nil
		})
	}()
	return <-failed
}

// serve answers each request until the kubelet ends the container.
func serve(address string, answer func() (map[string]any, error)) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen, err := answer()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(seen) // who asked is gone
	})}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// write says what is in the way of a new file; "" when nothing is.
func write(dir string) string {
	file := filepath.Join(dir, "written")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return errors.Unwrap(err).Error()
	}
	return ""
}

func ask(url string) (map[string]any, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	seen := map[string]any{}
	return seen, json.Unmarshal(text, &seen)
}
