package images

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nodeImage is what a node's containerd holds under one digest.
type nodeImage struct {
	digest string // of a manifest or a manifest list
	names  []string
	images []heldImage
	bytes  int64
}

// heldImage is one image of a manifest list, or the only image, as far as the node holds it.
type heldImage struct {
	foundImage
	config string // the digest of its configuration
	whole  bool   // every layer is there too
}

// images lists what the node's containerd holds; with a name, what stands under that alone. An entry whose manifest or configuration is not on
// the node has no images.
//
// ctr is asked as kind asks it. The interface for Kubernetes (crictl) shows neither labels nor what an interrupted import left.
func (n *KindNode) images(ctx context.Context, name string) ([]*nodeImage, error) {
	list := []string{"images", "ls"}
	if name != "" {
		list = append(list, "name=="+name)
	}
	text, err := n.ctr(ctx, list...)
	if err != nil {
		return nil, err
	}
	entries := parseImages(text)
	if len(entries) == 0 {
		return nil, nil
	}
	if text, err = n.ctr(ctx, "content", "ls", "-q"); err != nil {
		return nil, err
	}
	reader := &contentReader{node: n, present: map[string]bool{}, held: map[string][]byte{}}
	for _, digest := range strings.Fields(text) {
		reader.present[digest] = true
	}
	var out []*nodeImage
	for _, entry := range entries {
		out = append(out, &entry.nodeImage)
	}
	return out, reader.describe(ctx, entries)
}

// ctr runs containerd's command in Kubernetes' namespace.
func (n *KindNode) ctr(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := n.run(ctx, nil, &out, append([]string{"ctr", "--namespace=k8s.io"}, args...)...)
	return out.String(), err
}

// listedImage is an entry of ctr's list.
type listedImage struct {
	nodeImage
	mediaType types.MediaType
}

// parseImages reads a table with the columns REF, TYPE and DIGEST, and others after them. Names of one digest are one entry.
func parseImages(table string) []*listedImage {
	var out []*listedImage
	for _, line := range strings.Split(table, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] == "REF" {
			continue
		}
		at := slices.IndexFunc(out, func(e *listedImage) bool { return e.digest == fields[2] })
		if at < 0 {
			at = len(out)
			out = append(out, &listedImage{nodeImage: nodeImage{digest: fields[2]}, mediaType: types.MediaType(fields[1])})
		}
		out[at].names = append(out[at].names, fields[0])
	}
	return out
}

// contentReader reads manifests and configurations, many at a time, since each command on a node takes a while.
type contentReader struct {
	node    *KindNode
	present map[string]bool
	held    map[string][]byte
}

// describe fills in the images of all entries.
func (r *contentReader) describe(ctx context.Context, entries []*listedImage) error {
	var tops, children, configs []string
	for _, entry := range entries {
		tops = append(tops, entry.digest)
	}
	if err := r.read(ctx, tops); err != nil {
		return err
	}
	manifests := make([][]string, len(entries))
	for i, entry := range entries {
		manifests[i] = r.manifests(entry)
		children = append(children, manifests[i]...)
	}
	if err := r.read(ctx, children); err != nil {
		return err
	}
	for _, digest := range children {
		if manifest, err := v1.ParseManifest(bytes.NewReader(r.held[digest])); err == nil {
			configs = append(configs, manifest.Config.Digest.String())
		}
	}
	if err := r.read(ctx, configs); err != nil {
		return err
	}
	for i, entry := range entries {
		for _, digest := range manifests[i] {
			r.add(&entry.nodeImage, digest)
		}
	}
	return nil
}

// manifests are the digests of the manifests of an entry: its own, or those of its list.
func (r *contentReader) manifests(entry *listedImage) []string {
	if !entry.mediaType.IsIndex() {
		return []string{entry.digest}
	}
	index, err := v1.ParseIndexManifest(bytes.NewReader(r.held[entry.digest]))
	if err != nil {
		return nil // it is not on the node
	}
	var out []string
	for _, child := range index.Manifests {
		if child.MediaType.IsImage() {
			out = append(out, child.Digest.String())
		}
	}
	return out
}

// add describes one manifest, when it and its configuration are on the node.
func (r *contentReader) add(image *nodeImage, digest string) {
	manifest, err := v1.ParseManifest(bytes.NewReader(r.held[digest]))
	if err != nil {
		return
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(r.held[manifest.Config.Digest.String()]))
	if err != nil {
		return
	}
	one := heldImage{foundImage: asFound(config), config: manifest.Config.Digest.String(), whole: true}
	one.claimed = one.own
	image.bytes += manifest.Config.Size
	for _, layer := range manifest.Layers {
		one.whole = one.whole && r.present[layer.Digest.String()]
		image.bytes += layer.Size
	}
	image.images = append(image.images, one)
}

// printContent prints each digest as a JSON string, and after it what the node holds under it.
const printContent = `for digest; do printf '"%s"\n' "$digest"; ctr --namespace=k8s.io content get "$digest"; echo; done; exit 0`

// read reads the blobs of these digests that are on the node, all of them JSON. One that goes meanwhile is left out.
func (r *contentReader) read(ctx context.Context, digests []string) error {
	var ask []string
	for _, digest := range digests {
		if _, err := v1.NewHash(digest); err == nil && r.present[digest] && r.held[digest] == nil && !slices.Contains(ask, digest) {
			ask = append(ask, digest)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	var out bytes.Buffer
	if err := r.node.run(ctx, nil, &out, append([]string{"sh", "-c", printContent, "sh"}, ask...)...); err != nil {
		return err
	}
	digest := ""
	for documents := json.NewDecoder(&out); ; {
		var document json.RawMessage
		err := documents.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("what node %s holds cannot be read: %w", r.node.name, err)
		}
		if document[0] == '"' {
			digest = strings.Trim(string(document), `"`)
		} else {
			r.held[digest] = document
		}
	}
}

// nodeName is the name under which containerd, and so the kubelet, keeps ref.
func nodeName(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", &RefError{ref, err.Error()}
	}
	return named.String(), nil
}
