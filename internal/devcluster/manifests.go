package devcluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A keptManifest is a PUT of a manifest that the registry took.
type keptManifest struct {
	Path        string
	ContentType string
	Body        []byte
}

// keepManifests makes the registry, which has its blobs on disk, keep its manifests as well: each PUT that succeeds is
// written to dir, and is put again when the registry starts.
func keepManifests(registry http.Handler, dir string) (http.Handler, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := putAgain(registry, dir); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
			registry.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		// Kept first: a client that has its answer must find the manifest after the next start.
		if err := keep(dir, keptManifest{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		registry.ServeHTTP(w, r)
	}), nil
}

func keep(dir string, manifest keptManifest) error {
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	// The time is the order: an index is put after what it lists, a tag moves to what was put last.
	name := fmt.Sprintf("%020d.json", time.Now().UnixNano())
	return writeFile(filepath.Join(dir, name), data)
}

func putAgain(registry http.Handler, dir string) error {
	// In the order of their names.
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		var manifest keptManifest
		if err := json.Unmarshal(data, &manifest); err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
		request, err := http.NewRequest(http.MethodPut, manifest.Path, bytes.NewReader(manifest.Body))
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
		request.Header.Set("Content-Type", manifest.ContentType)
		// One that the registry refused the first time is refused again.
		registry.ServeHTTP(unheard{}, request)
	}
	return nil
}

// unheard is a response that nobody waits for.
type unheard struct{}

func (unheard) Header() http.Header { return http.Header{} }

func (unheard) Write(data []byte) (int, error) { return len(data), nil }

func (unheard) WriteHeader(int) {}
