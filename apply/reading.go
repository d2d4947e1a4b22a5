package apply

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// A reading is what the directories of a set gave when they were read, in the order of the sources. The inventory keeps
// that of the last apply, so that the next one can tell an object that was taken out from one that is only not read any
// more.
type reading []*folder

// A folder is one directory that was read, or one kustomization. Paths in it are relative to the root of the source,
// with slashes.
type folder struct {
	name    string         // of the root, as the caller wrote it
	objects map[string]int // how many objects each file gave that was read
	unread  []unreadFile   // sorted by path
	cut     bool           // there was more to look at than the bounds allow
	why     func(path string) string
}

// An UnreadFile is a file in a directory of a set, or below it, that looks like a manifest and is not read.
type UnreadFile struct {
	Path string `json:"path"` // begins with the directory as Read was given it; quoted where it holds what can't be printed
	Why  string `json:"why"`  // why it is not read
}

// Unread lists the files that look like manifests and gave the set nothing, sorted within each source: files in
// sub-folders of a Directory, with another extension, or that a kustomization does not name. A caller should tell them:
// whoever moved a manifest there expects it to be applied. A set that was not made by Read has none.
//
// At most 5000 entries are looked at in each source, 8 folders deep, 64 KiB of each file and 32 MiB in all; folders
// that begin with a dot, node_modules, symbolic links, pipes and devices are passed over.
func (s *Set) Unread() []UnreadFile {
	var all []UnreadFile
	for _, p := range s.reading {
		for _, u := range p.unread {
			all = append(all, UnreadFile{Path: p.shown(u.path), Why: p.why(u.path)})
		}
	}
	return all
}

// shown is a path for people. Names come from a file system or from an inventory, and may hold anything.
func (f *folder) shown(file string) string {
	full := filepath.Join(f.name, filepath.FromSlash(file))
	if quoted := strconv.Quote(full); quoted != `"`+full+`"` {
		return quoted
	}
	return full
}

// holds says that a path is a regular file in the root. Nothing outside of the root is looked at, whatever the path.
func (f *folder) holds(file string) bool {
	root, err := os.OpenRoot(f.name)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(file))
	return err == nil && info.Mode().IsRegular()
}

// notedVersion is the version of a reading in the inventory. One of another version counts as none.
const notedVersion = 1

// notedLimit bounds a reading in the inventory, in bytes.
const notedLimit = 64 << 10

// A notedReading is a reading as the inventory keeps it.
type notedReading struct {
	Version int          `json:"version"`
	Places  []notedPlace `json:"places"`
}

type notedPlace struct {
	Read   map[string]int    `json:"read,omitempty"`   // how many objects a file gave
	Unread map[string]string `json:"unread,omitempty"` // the sum of what a file seems to hold: of names, never of values
	Cut    bool              `json:"cut,omitempty"`    // Unread is not all that there was
}

// text is what the inventory keeps of a reading. One that is too large is kept without the files that were not read, or
// without any.
func (r reading) text() (string, error) {
	if r == nil {
		return "", nil
	}
	noted := notedReading{Version: notedVersion}
	for _, p := range r {
		n := notedPlace{Read: p.objects, Unread: map[string]string{}, Cut: p.cut}
		for _, u := range p.unread {
			n.Unread[u.path] = u.sum()
		}
		noted.Places = append(noted.Places, n)
	}
	raw, err := json.Marshal(noted)
	if len(raw) > notedLimit {
		for i := range noted.Places {
			noted.Places[i].Unread, noted.Places[i].Cut = nil, true
		}
		raw, err = json.Marshal(noted)
	}
	if err != nil {
		return "", err
	}
	if len(raw) > notedLimit { // that there was one, and no more
		raw, err = json.Marshal(notedReading{Version: notedVersion, Places: []notedPlace{}})
	}
	return string(raw), err
}

// readNoted reads what text wrote. Whoever can write the ConfigMap can write anything there, so what is not understood
// counts as nothing known, and no path leads out of the root.
func readNoted(text string) []notedPlace {
	var noted notedReading
	if len(text) > notedLimit || json.Unmarshal([]byte(text), &noted) != nil || noted.Version != notedVersion {
		return nil
	}
	for _, p := range noted.Places {
		for file := range p.Read {
			if !filepath.IsLocal(filepath.FromSlash(file)) || path.Clean(file) != file {
				return nil
			}
		}
	}
	return noted.Places
}

// noteReading has the inventory keep the reading of this run. One that leaves objects behind, because it does not
// prune, keeps the older reading: the prune to come is to be judged by what was read when they were still of the set.
func (r *run) noteReading() (err error) {
	if !r.opts.Prune {
		for k := range r.inv.records {
			if !r.wanted[k] {
				return nil
			}
		}
	}
	r.inv.reading, err = r.set.reading.text()
	return err
}
