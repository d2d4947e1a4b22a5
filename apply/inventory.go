package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A record is what the inventory keeps about one object.
type record struct {
	Ref
	// UID is empty until the object was seen: the record was written before it.
	UID types.UID `json:"uid,omitempty"`
	// Want and Entry are hashes of what was asked for and of what the server noted; see order.asAsked. Want is empty for Secrets;
	// of one that is minted it is the hash of its keys' names, and Entry its resourceVersion.
	Want  string `json:"want,omitempty"`
	Entry string `json:"entry,omitempty"`
	// Seen is the object's state when it was seen to be as asked; see seenOf. It is empty when the time in Entry was well over by then.
	Seen string `json:"seen,omitempty"`
	// Keep is the mark by which the manifest says that the object is not to be deleted when it leaves; see keepMarkOf.
	Keep string `json:"keep,omitempty"`
}

// An inventory is the list of objects that a set may have in the cluster, kept in a ConfigMap of the set's namespace. One that is
// too large for an object is split into ConfigMaps named by their content, so that a change of the first one switches them all.
type inventory struct {
	maps  typedcorev1.ConfigMapInterface
	set   *Set
	limit int // bytes of records in one object

	head    *corev1.ConfigMap    // as last read or written; nil when there is none
	parts   map[string]types.UID // of the ConfigMaps that hold the records, when those do not fit into the head
	records map[Ref]record
	release *release // as it is to be stored; nil when the set has no hooks
	reading string   // as it is to be stored; see reading.text
}

const (
	inventoryVersion = 1
	inventoryLimit   = 900 << 10 // an object may have 1 MiB in etcd
	recordsKey       = "inventory.json"
	chunksKey        = "chunks.json"
	releaseKey       = "release.json"
	readingKey       = "reading.json"
)

type inventoryFile struct {
	Version int      `json:"version"`
	Objects []record `json:"objects"`
}

// InventoryName is the name of the ConfigMap that lists the objects of a set.
func InventoryName(set string) string { return "jr2-inventory-" + set }

func (i *inventory) ref() Ref {
	return Ref{Version: "v1", Kind: "ConfigMap", Namespace: i.set.Namespace, Name: InventoryName(i.set.Name)}
}

// loadInventory reads the inventory; only a clear "not found" means that there is none yet.
func loadInventory(ctx context.Context, client kubernetes.Interface, set *Set) (*inventory, error) {
	inv := &inventory{maps: client.CoreV1().ConfigMaps(set.Namespace), set: set, limit: inventoryLimit}
	return inv, inv.read(ctx)
}

func (i *inventory) read(ctx context.Context) error {
	i.head, i.parts, i.records, i.release, i.reading = nil, map[string]types.UID{}, map[Ref]record{}, nil, ""
	head, err := i.maps.Get(ctx, InventoryName(i.set.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) && Classify(err) == ClassNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if head.Annotations[SetAnnotation] != i.set.ID() {
		return &InventoryError{Ref: i.ref(), Foreign: true, Err: i.foreign(head)}
	}
	texts := []string{head.Data[recordsKey]}
	if raw := head.Data[chunksKey]; raw != "" {
		names, err := chunkNames(head)
		if err != nil {
			return i.unreadable(err)
		}
		texts = nil
		if err := i.plausibleParts(names); err != nil {
			return i.unreadable(err)
		}
		for _, name := range names {
			chunk, err := i.maps.Get(ctx, name, metav1.GetOptions{})
			if err != nil && Classify(err) == ClassNotFound {
				return i.unreadable(fmt.Errorf("a part of the inventory: %w", err))
			}
			if err != nil {
				return fmt.Errorf("a part of the inventory: %w", err)
			}
			if chunk.Annotations[SetAnnotation] != i.set.ID() {
				return i.unreadable(noPart(name))
			}
			i.parts[name] = chunk.UID
			texts = append(texts, chunk.Data[recordsKey])
		}
	}
	for _, text := range texts {
		var file inventoryFile
		if err := json.Unmarshal([]byte(text), &file); err != nil {
			return i.unreadable(fmt.Errorf("the inventory does not read: %w", err))
		}
		if file.Version != inventoryVersion {
			return &InventoryError{Ref: i.ref(), Version: file.Version,
				Err: fmt.Errorf("the inventory has version %d, and this engine reads version %d", file.Version, inventoryVersion)}
		}
		for _, r := range file.Objects {
			if r.namesSomething() {
				i.records[r.key()] = r.trimmed()
			}
		}
	}
	if i.release, err = readRelease(head.Data[releaseKey]); err != nil {
		return i.unreadable(err)
	}
	i.head, i.reading = head, head.Data[readingKey]
	return nil
}

// lastReading is the reading that is stored; empty when there is none.
func (i *inventory) lastReading() string {
	if i.head == nil {
		return ""
	}
	return i.head.Data[readingKey]
}

// knownReading is the last reading, as long as this engine wrote it by the server's notes: nil where nobody knows what was read at the last apply.
func (i *inventory) knownReading() []notedPlace {
	if i.head == nil {
		return nil
	}
	for _, e := range i.head.ManagedFields {
		if e.Manager != DefaultFieldManager && notes(e, `"f:`+readingKey+`":{}`) {
			return nil
		}
	}
	return readNoted(i.lastReading())
}

// sawObjects says that an earlier run saw an object of the set.
func (i *inventory) sawObjects() bool {
	for _, rec := range i.records {
		if rec.UID != "" {
			return true
		}
	}
	return false
}

// unreadable says which ConfigMap it is and how to go on without it: a new record lists what the set holds then, so that what left the set is given up.
func (i *inventory) unreadable(err error) error {
	ref := i.ref()
	return &InventoryError{Ref: ref, Err: fmt.Errorf("%s: %w; restore it, or give up what left the set and delete it (kubectl delete configmap %s -n %s)", ref, err, ref.Name, ref.Namespace)}
}

// foreign is why a ConfigMap of the inventory's name is not the inventory: somebody else's must be neither believed nor overwritten.
func (i *inventory) foreign(found *corev1.ConfigMap) error {
	return fmt.Errorf("%s does not carry the mark of the set (annotation %s: %s), so it is somebody else's (field managers: %s); give the set another name or namespace, or delete it (kubectl delete configmap %s -n %s)",
		Ref{Version: "v1", Kind: "ConfigMap", Namespace: found.Namespace, Name: found.Name}, SetAnnotation, i.set.ID(), strings.Join(fewOf(managersOf(found)), ", "), found.Name, found.Namespace)
}

func chunkNames(head *corev1.ConfigMap) ([]string, error) {
	var names []string
	raw := head.Data[chunksKey]
	if raw == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(raw), &names); err != nil {
		return nil, fmt.Errorf("the inventory does not read: %w", err)
	}
	return names, nil
}

// holdsRelease says that the release is stored as it is.
func (i *inventory) holdsRelease() bool {
	stored := ""
	if i.head != nil {
		stored = i.head.Data[releaseKey]
	}
	if i.release == nil {
		return stored == ""
	}
	raw, err := json.Marshal(i.release)
	return err == nil && string(raw) == stored
}

// holds says that the records and the release are stored as they are. Where nothing was and nothing is, not even the namespace need be.
func (i *inventory) holds(records map[Ref]record) bool {
	if i.head == nil {
		return len(records) == 0 && i.release == nil
	}
	return i.holdsRelease() && i.reading == i.lastReading() && maps.Equal(records, i.records)
}

// write stores the records, when they differ from what is stored. It fails when another run changed the inventory meanwhile.
func (i *inventory) write(ctx context.Context, records map[Ref]record) error {
	if i.holds(records) {
		return nil
	}
	var kept []byte
	var err error
	if i.release != nil {
		if kept, err = json.Marshal(i.release); err != nil {
			return err
		}
	}
	texts, err := split(records, max(i.limit-len(kept)-len(i.reading), i.limit/2))
	if err != nil {
		return err
	}
	if len(texts) > mostParts {
		return &ObjectError{Ref: i.ref(), Class: ClassInvalid, Err: errTooManyRecords}
	}
	data := map[string]string{recordsKey: texts[0]}
	var names []string
	if len(texts) > 1 {
		for _, text := range texts {
			sum := sha256.Sum256([]byte(text))
			names = append(names, InventoryName(i.set.Name)+"-"+hex.EncodeToString(sum[:5]))
		}
		raw, err := json.Marshal(names)
		if err != nil {
			return err
		}
		data = map[string]string{chunksKey: string(raw)}
	}
	if i.release != nil {
		data[releaseKey] = string(kept)
	}
	if i.reading != "" {
		data[readingKey] = i.reading
	}
	if i.head != nil && maps.Equal(i.head.Data, data) {
		i.records = maps.Clone(records)
		return nil
	}
	old := i.parts
	if i.parts, err = i.writeParts(ctx, names, texts); err != nil {
		return err
	}
	if err := i.writeHead(ctx, data); err != nil {
		return err
	}
	i.records = maps.Clone(records)
	for name, uid := range old { // a part that stays behind is only a small waste
		if _, used := i.parts[name]; !used {
			_ = i.maps.Delete(ctx, name, exactly(uid))
		}
	}
	return nil
}

// writeParts stores the records that do not fit into the head. A part is named by its content: one that is there already is the same.
func (i *inventory) writeParts(ctx context.Context, names, texts []string) (map[string]types.UID, error) {
	parts := map[string]types.UID{}
	for n, name := range names {
		part, err := i.maps.Create(ctx, i.object(name, map[string]string{recordsKey: texts[n]}), metav1.CreateOptions{FieldManager: DefaultFieldManager})
		if Classify(err) == ClassAlreadyExists {
			part, err = i.maps.Get(ctx, name, metav1.GetOptions{})
			if err == nil && (part.Annotations[SetAnnotation] != i.set.ID() || part.Data[recordsKey] != texts[n]) {
				ref := i.ref()
				ref.Name = name
				err = &InventoryError{Ref: ref, Foreign: true, Err: i.foreign(part)}
			}
		}
		if err != nil {
			return nil, err
		}
		parts[name] = part.UID
	}
	return parts, nil
}

// remove deletes the inventory, the head first: without it nobody reads the parts.
func (i *inventory) remove(ctx context.Context) error {
	if i.head == nil {
		return nil
	}
	err := i.maps.Delete(ctx, i.head.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &i.head.UID, ResourceVersion: &i.head.ResourceVersion},
	})
	switch Classify(err) {
	case ClassNone, ClassNotFound:
	case ClassStale:
		return fmt.Errorf("%w: %w", ErrInventoryMoved, err)
	default:
		return err
	}
	for name, uid := range i.parts {
		if err := i.maps.Delete(ctx, name, exactly(uid)); err != nil && Classify(err) != ClassNotFound && Classify(err) != ClassStale {
			return err
		}
	}
	i.head = nil
	return nil
}

// exactly deletes the object with that UID and no other of its name.
func exactly(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

func (i *inventory) writeHead(ctx context.Context, data map[string]string) error {
	var err error
	var wrote *corev1.ConfigMap
	if i.head == nil {
		wrote, err = i.maps.Create(ctx, i.object(InventoryName(i.set.Name), data), metav1.CreateOptions{FieldManager: DefaultFieldManager})
	} else {
		next := i.object(i.head.Name, data)
		next.ResourceVersion, next.UID = i.head.ResourceVersion, i.head.UID
		wrote, err = i.maps.Update(ctx, next, metav1.UpdateOptions{FieldManager: DefaultFieldManager})
	}
	switch Classify(err) {
	case ClassNone:
		i.head = wrote
		return nil
	case ClassStale, ClassAlreadyExists:
		// Our own write, whose answer was lost, looks the same as that of another run.
		now, readErr := i.maps.Get(ctx, InventoryName(i.set.Name), metav1.GetOptions{})
		if nothing := i.head == nil && Classify(readErr) == ClassNotFound; nothing || readErr == nil && i.head != nil && now.ResourceVersion == i.head.ResourceVersion {
			return err // nobody wrote: whoever refused it did so in passing
		}
		if readErr != nil {
			return readErr
		}
		if maps.Equal(now.Data, data) {
			i.head = now
			return nil
		}
		return fmt.Errorf("%w: %w", ErrInventoryMoved, err)
	}
	return err
}

// ErrInventoryMoved says that another run of the same set changed its inventory during this one; see Lock.
var ErrInventoryMoved = errors.New("another run changed the inventory of the set")

func (i *inventory) object(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Namespace:   i.set.Namespace,
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "jr2"},
			Annotations: map[string]string{SetAnnotation: i.set.ID()},
		},
		Data: data,
	}
}

// split turns the records into one or more files of at most limit bytes, in the order of their refs.
func split(records map[Ref]record, limit int) ([]string, error) {
	all := slices.SortedFunc(maps.Values(records), func(a, b record) int { return compareRefs(a.Ref, b.Ref) })
	raw, err := json.Marshal(inventoryFile{inventoryVersion, all})
	if err != nil {
		return nil, err
	}
	if len(raw) <= limit || len(all) < 2 {
		return []string{string(raw)}, nil
	}
	var texts []string
	for len(all) > 0 {
		n, size := 0, len(`{"version":1,"objects":[]}`)
		for ; n < len(all); n++ { // by size: names are of all lengths, and those of one kind lie together
			raw, err := json.Marshal(all[n])
			if err != nil {
				return nil, err
			}
			if size += len(raw) + 1; size > limit && n > 0 {
				break
			}
		}
		raw, err := json.Marshal(inventoryFile{inventoryVersion, all[:n]})
		if err != nil {
			return nil, err
		}
		texts, all = append(texts, string(raw)), all[n:]
	}
	return texts, nil
}
