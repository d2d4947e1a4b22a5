package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	ocispecs "github.com/opencontainers/image-spec/specs-go/v1"
)

// archivedImage is the only image of an archive.
type archivedImage struct {
	config string // the digest of its configuration, which is the image's id
	foundImage
}

// maxDocument bounds what is taken for a manifest or a configuration; layers are larger, and are not read.
const maxDocument = 4 << 20

// readArchive reads what an archive holds, without its layers: an OCI image layout, else what docker save writes.
func readArchive(archive io.ReadSeeker) (archivedImage, error) {
	documents, err := archiveDocuments(archive)
	if err != nil {
		return archivedImage{}, fmt.Errorf("read the image archive: %w", err)
	}
	name, err := configName(documents)
	if err != nil {
		return archivedImage{}, fmt.Errorf("the image archive: %w", err)
	}
	text, ok := documents[name]
	if !ok {
		return archivedImage{}, fmt.Errorf("the image archive lacks the configuration %s", name)
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(text))
	if err != nil {
		return archivedImage{}, fmt.Errorf("the image archive: %s: %w", name, err)
	}
	sum := sha256.Sum256(text)
	one := archivedImage{config: "sha256:" + hex.EncodeToString(sum[:]), foundImage: asFound(config)}
	one.claimed = one.own
	return one, nil
}

// archiveDocuments are the entries of a tar archive that look like JSON.
func archiveDocuments(archive io.ReadSeeker) (map[string][]byte, error) {
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	documents := map[string][]byte{}
	for entries := tar.NewReader(archive); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		if entry.Typeflag != tar.TypeReg || entry.Size == 0 || entry.Size > maxDocument {
			continue
		}
		text := make([]byte, entry.Size)
		if _, err := io.ReadFull(entries, text[:1]); err != nil {
			return nil, err
		}
		if text[0] != '{' && text[0] != '[' {
			continue
		}
		if _, err := io.ReadFull(entries, text[1:]); err != nil {
			return nil, err
		}
		documents[strings.TrimPrefix(entry.Name, "./")] = text
	}
}

// configName is the entry with the configuration of the archive's only image.
func configName(documents map[string][]byte) (string, error) {
	if text, ok := documents[ocispecs.ImageIndexFile]; ok {
		index, err := v1.ParseIndexManifest(bytes.NewReader(text))
		if err != nil {
			return "", err
		}
		if len(index.Manifests) != 1 || !index.Manifests[0].MediaType.IsImage() {
			return "", fmt.Errorf("it holds %d entries and not one image", len(index.Manifests))
		}
		blob := blobName(index.Manifests[0].Digest)
		manifest, err := v1.ParseManifest(bytes.NewReader(documents[blob]))
		if err != nil {
			return "", fmt.Errorf("%s: %w", blob, err)
		}
		return blobName(manifest.Config.Digest), nil
	}
	var saved []struct{ Config string }
	if err := json.Unmarshal(documents["manifest.json"], &saved); err != nil {
		return "", fmt.Errorf("manifest.json: %w", err)
	}
	if len(saved) != 1 {
		return "", fmt.Errorf("it holds %d images and not one", len(saved))
	}
	return saved[0].Config, nil
}

func blobName(digest v1.Hash) string { return "blobs/" + digest.Algorithm + "/" + digest.Hex }
