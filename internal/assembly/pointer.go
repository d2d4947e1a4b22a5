package assembly

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

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

// valid says whether a record can be what a publisher wrote: it bounds what a reader fetches.
func (r *record) valid() bool {
	return len(r.Hash) == 12 && r.Size > 0 && r.Size <= MaxSize && r.Chunks > 0 && r.Chunks <= r.Size
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
	return fmt.Sprintf("ConfigMap %s has format %q, and this version knows %d: a newer jr2 published it", names.AssemblyPointer, e.Format, Format)
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

// write puts the state into the pointer's data.
func (s state) write(pointer *corev1.ConfigMap) error {
	if pointer.Data == nil {
		pointer.Data = map[string]string{}
	}
	pointer.Data[keyFormat] = strconv.Itoa(Format)
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
