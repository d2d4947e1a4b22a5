package assembly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"jr2.dev/jr2/internal/clip"
	"jr2.dev/jr2/internal/names"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Keys of the pointer.
const (
	keyFormat   = "format"
	keyCurrent  = "current"
	keyPrevious = "previous"
)

// record says what one stored Assembly consists of.
type record struct {
	Hash      string   `json:"hash"`
	Chunks    int      `json:"chunks"`
	Size      int      `json:"size"`
	SHA256    string   `json:"sha256"` // of the archive, in hex
	Workflows []string `json:"workflows"`
}

func recordOf(a *Assembly, chunkSize int) *record {
	return &record{
		Hash: a.Hash, Chunks: (len(a.Archive) + chunkSize - 1) / chunkSize, Size: len(a.Archive),
		SHA256: sum(a.Archive), Workflows: a.Manifest.Workflows,
	}
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// Bounds of what a record may say. Whoever may edit ConfigMaps in the namespace may have written it.
const (
	// maxChunks bounds the requests of a reader. An Assembly of MaxSize has 43 chunks.
	maxChunks    = 256
	maxWorkflows = 5000
	maxWorkflow  = 253
)

// valid says whether a record can be what a publisher wrote: it bounds what a reader fetches, and what is shown of it.
func (r *record) valid() bool {
	named := !slices.ContainsFunc(r.Workflows, func(name string) bool {
		return len(name) > maxWorkflow || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl)
	})
	return isHex(r.Hash, 12) && isHex(r.SHA256, 2*sha256.Size) && r.Size > 0 && r.Size <= MaxSize &&
		r.Chunks > 0 && r.Chunks <= min(r.Size, maxChunks) && len(r.Workflows) <= maxWorkflows && named
}

// isHex says that a text is that many lower-case hex digits.
func isHex(text string, digits int) bool {
	return len(text) == digits && strings.Trim(text, "0123456789abcdef") == ""
}

func chunkName(hash string, n int) string {
	return names.AssemblyPointer + "-" + hash + "-" + strconv.Itoa(n)
}

// state is the content of the pointer.
type state struct{ Current, Previous *record }

// holds says whether the pointer names the hash.
func (s state) holds(hash string) bool {
	return s.Current != nil && s.Current.Hash == hash || s.Previous != nil && s.Previous.Hash == hash
}

// after is the state when the record has become current.
func (s state) after(r *record) state {
	if s.Current == nil || s.Current.Hash == r.Hash {
		return state{r, s.Previous}
	}
	return state{r, s.Current}
}

// getPointer returns nil when there is none.
func getPointer(ctx context.Context, client kubernetes.Interface, namespace string) (*corev1.ConfigMap, error) {
	pointer, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, names.AssemblyPointer, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, names.AssemblyPointer, err)
	}
	return pointer, nil
}

// FormatError says that the store is of a version of the format that this program does not know.
type FormatError struct{ Format string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("ConfigMap %s has format %q, and this version knows %d: a newer jr2 published it; when none did, delete the ConfigMap, and publish again",
		names.AssemblyPointer, clip.Text(e.Format), Format)
}

// stateOf reads the pointer's content. A *FormatError says that it must be left alone, an error with ErrInvalid that it is damaged.
func stateOf(pointer *corev1.ConfigMap) (state, error) {
	var s state
	if format, ok := pointer.Data[keyFormat]; ok && format != strconv.Itoa(Format) {
		return s, &FormatError{Format: format}
	}
	for key, into := range map[string]**record{keyCurrent: &s.Current, keyPrevious: &s.Previous} {
		text, ok := pointer.Data[key]
		if !ok {
			continue
		}
		r := new(record)
		if err := json.Unmarshal([]byte(text), r); err != nil {
			return state{}, fmt.Errorf("ConfigMap %s, key %s: %w: %w", names.AssemblyPointer, key, ErrInvalid, err)
		}
		if !r.valid() {
			return state{}, fmt.Errorf("ConfigMap %s, key %s: %w: its numbers cannot be", names.AssemblyPointer, key, ErrInvalid)
		}
		*into = r
	}
	return s, nil
}

// maxOthers is how many bytes of keys that no publisher writes may lie in the pointer.
const maxOthers = 64 << 10

// makeRoom takes out what somebody put into the pointer beside its keys, when there is so much of it that nothing else would fit.
func makeRoom(pointer *corev1.ConfigMap) {
	ours := []string{keyFormat, keyCurrent, keyPrevious}
	size := 0
	for key, value := range pointer.Data {
		if !slices.Contains(ours, key) {
			size += len(key) + len(value)
		}
	}
	for key, value := range pointer.BinaryData {
		size += len(key) + len(value)
	}
	if size > maxOthers {
		maps.DeleteFunc(pointer.Data, func(key, _ string) bool { return !slices.Contains(ours, key) })
		pointer.BinaryData = nil
	}
}

// write puts the state into the pointer's data.
func (s state) write(pointer *corev1.ConfigMap) error {
	if pointer.Data == nil {
		pointer.Data = map[string]string{}
	}
	pointer.Data[keyFormat] = strconv.Itoa(Format)
	makeRoom(pointer)
	for key, r := range map[string]*record{keyCurrent: s.Current, keyPrevious: s.Previous} {
		if r == nil {
			delete(pointer.Data, key)
			continue
		}
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		pointer.Data[key] = string(text)
	}
	return nil
}
