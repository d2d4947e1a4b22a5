package images_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"jr2.dev/jr2/images"
)

// A fakeEngine answers as a Docker Engine does in which the nodes of a kind cluster run. A real containerd can't be made to fail as these do.
type fakeEngine struct {
	lock  sync.Mutex
	nodes []*fakeNode
	execs map[string]*fakeExec
	// list, when set, answers the list of containers.
	list http.HandlerFunc
}

// A fakeNode keeps images as containerd does.
type fakeNode struct {
	name, state string
	names       map[string]v1.Descriptor
	blobs       map[string][]byte
	commands    []string
	// fail, when set, may answer a command in the node's place.
	fail func(command string, stderr io.Writer) (status int, handled bool)
}

type fakeExec struct {
	node    *fakeNode
	command []string
	status  int
}

// newFakeEngine has running nodes with these names.
func newFakeEngine(t *testing.T, names ...string) (*fakeEngine, images.ConnectOptions) {
	t.Helper()
	e := &fakeEngine{execs: map[string]*fakeExec{}}
	for _, name := range names {
		e.nodes = append(e.nodes, &fakeNode{name: name, state: "running", names: map[string]v1.Descriptor{}, blobs: map[string][]byte{}})
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.47") })
	mux.HandleFunc("GET /{version}/containers/json", e.containers)
	mux.HandleFunc("POST /{version}/containers/{node}/exec", e.create)
	mux.HandleFunc("POST /{version}/exec/{id}/start", e.run)
	mux.HandleFunc("GET /{version}/exec/{id}/json", e.inspect)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return e, images.ConnectOptions{Env: map[string]string{"DOCKER_HOST": "tcp://" + strings.TrimPrefix(server.URL, "http://")}}
}

func (e *fakeEngine) containers(w http.ResponseWriter, r *http.Request) {
	if e.list != nil {
		e.list(w, r)
		return
	}
	list := []map[string]any{}
	for _, node := range e.nodes {
		list = append(list, map[string]any{"Id": node.name, "Names": []string{"/" + node.name}, "State": node.state,
			"Labels": map[string]string{"io.x-k8s.kind.cluster": "dev", "io.x-k8s.kind.role": "worker"}})
	}
	json.NewEncoder(w).Encode(list) //nolint:errcheck // a test
}

func (e *fakeEngine) create(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Cmd []string }
	json.NewDecoder(r.Body).Decode(&asked) //nolint:errcheck // a test
	e.lock.Lock()
	defer e.lock.Unlock()
	at := slices.IndexFunc(e.nodes, func(n *fakeNode) bool { return n.name == r.PathValue("node") })
	id := fmt.Sprint(len(e.execs))
	e.execs[id] = &fakeExec{node: e.nodes[at], command: asked.Cmd}
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(map[string]string{"Id": id}) //nolint:errcheck // a test
}

// run takes over the connection, as the engine does for a command's streams.
func (e *fakeEngine) run(w http.ResponseWriter, r *http.Request) {
	e.lock.Lock()
	exec := e.execs[r.PathValue("id")]
	e.lock.Unlock()
	io.Copy(io.Discard, r.Body) //nolint:errcheck // a test
	conn, both, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n") //nolint:errcheck // a test
	e.lock.Lock()
	defer e.lock.Unlock()
	exec.status = exec.node.run(exec.command, both, framed{conn, 1}, framed{conn, 2})
	conn.(interface{ CloseWrite() error }).CloseWrite() //nolint:errcheck // a test
	io.Copy(io.Discard, both)                           //nolint:errcheck // a connection that is closed with something unread is reset
}

func (e *fakeEngine) inspect(w http.ResponseWriter, r *http.Request) {
	e.lock.Lock()
	defer e.lock.Unlock()
	json.NewEncoder(w).Encode(map[string]any{"ID": r.PathValue("id"), "Running": false, "ExitCode": e.execs[r.PathValue("id")].status}) //nolint:errcheck // a test
}

// framed writes as the engine does where several streams share a connection.
type framed struct {
	to     io.Writer
	stream byte
}

func (f framed) Write(p []byte) (int, error) {
	header := make([]byte, 8)
	header[0] = f.stream
	binary.BigEndian.PutUint32(header[4:], uint32(len(p)))
	_, err := f.to.Write(append(header, p...))
	return len(p), err
}

// run is the commands that a node is asked to run.
func (n *fakeNode) run(command []string, stdin io.Reader, stdout, stderr io.Writer) int {
	line := strings.TrimPrefix(strings.Join(command, " "), "ctr --namespace=k8s.io ")
	n.commands = append(n.commands, line)
	if n.fail != nil {
		if status, handled := n.fail(line, stderr); handled {
			return status
		}
	}
	switch {
	case line == "version":
	case line == "cat /etc/machine-id":
		fmt.Fprintln(stdout, "machine-"+n.name)
	case line == "containerd config dump":
		io.WriteString(stdout, "version = 3\n[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'overlayfs'\n") //nolint:errcheck // a test
	case strings.HasPrefix(line, "images import"):
		n.load(stdin)
	case line == "images ls -q":
		for name := range n.names {
			fmt.Fprintln(stdout, name)
		}
	case strings.HasPrefix(line, "images ls"):
		fmt.Fprintln(stdout, "REF TYPE DIGEST SIZE PLATFORMS LABELS")
		for name, desc := range n.names {
			if only := strings.TrimPrefix(line, "images ls name=="); only == line || only == name {
				fmt.Fprintf(stdout, "%s %s %s 1 KiB - -\n", name, desc.MediaType, desc.Digest)
			}
		}
	case line == "content ls -q":
		for digest := range n.blobs {
			fmt.Fprintln(stdout, digest)
		}
	case command[0] == "sh":
		for _, digest := range command[4:] {
			fmt.Fprintf(stdout, "%q\n%s\n", digest, n.blobs[digest])
		}
	case strings.HasPrefix(line, "images rm --sync "):
		for _, name := range strings.Fields(line)[3:] {
			delete(n.names, name)
		}
	default:
		fmt.Fprintln(stderr, "unknown command", line)
		return 127
	}
	return 0
}

// load imports an OCI archive.
func (n *fakeNode) load(archive io.Reader) {
	var index v1.IndexManifest
	for entries := tar.NewReader(archive); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil { // the client has gone
			return
		}
		text, err := io.ReadAll(entries)
		if err != nil {
			return
		}
		if hex, ok := strings.CutPrefix(entry.Name, "blobs/sha256/"); ok {
			n.blobs["sha256:"+hex] = text
		}
		if entry.Name == "index.json" {
			json.Unmarshal(text, &index) //nolint:errcheck // a test
		}
	}
	for _, desc := range index.Manifests {
		n.names[desc.Annotations["io.containerd.image.name"]] = desc
		n.names["import-2026-11-30@"+desc.Digest.String()] = desc
	}
}

// has puts an image on the node.
func (n *fakeNode) has(t *testing.T, name string, image v1.Image) {
	t.Helper()
	var archive bytes.Buffer
	must(t, writeLayout(&archive, name, image))
	n.load(&archive)
}

// writeLayout writes images as one OCI image layout, each under the name.
func writeLayout(w io.Writer, name string, all ...v1.Image) error {
	out := tar.NewWriter(w)
	add := func(path string, text []byte) error {
		if err := out.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err := out.Write(text)
		return err
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: "application/vnd.oci.image.index.v1+json"}
	for _, image := range all {
		blobs, desc, err := blobsOf(image)
		if err != nil {
			return err
		}
		for digest, text := range blobs {
			if err := add("blobs/"+strings.Replace(digest, ":", "/", 1), text); err != nil {
				return err
			}
		}
		desc.Annotations = map[string]string{"io.containerd.image.name": name}
		index.Manifests = append(index.Manifests, desc)
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return errors.Join(add("oci-layout", []byte(`{"imageLayoutVersion": "1.0.0"}`)), add("index.json", text), out.Close())
}

// blobsOf is all of an image by digest.
func blobsOf(image v1.Image) (map[string][]byte, v1.Descriptor, error) {
	manifest, err1 := image.RawManifest()
	config, err2 := image.RawConfigFile()
	digest, err3 := image.Digest()
	id, err4 := image.ConfigName()
	mediaType, err5 := image.MediaType()
	layers, err6 := image.Layers()
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, v1.Descriptor{}, err
	}
	blobs := map[string][]byte{digest.String(): manifest, id.String(): config}
	for _, layer := range layers {
		digest, err1 := layer.Digest()
		stream, err2 := layer.Compressed()
		if err := errors.Join(err1, err2); err != nil {
			return nil, v1.Descriptor{}, err
		}
		text, err := io.ReadAll(stream)
		if err != nil {
			return nil, v1.Descriptor{}, err
		}
		blobs[digest.String()] = text
	}
	return blobs, v1.Descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(manifest))}, nil
}

// archiver is a Builder that hands out what it is given.
type archiver struct {
	pusher
	write func(w io.Writer, name string) error
}

func (a *archiver) Archive(ctx context.Context, req images.BuildRequest, w io.Writer) error {
	a.builds++
	a.requests = append(a.requests, req)
	if a.err != nil {
		return a.err
	}
	if err := req.BeforePush(ctx, a.built); err != nil {
		return err
	}
	return a.write(w, "docker.io/library/"+req.Ref)
}
