package devcluster

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupPrefix = tempPrefix + "node-"
	// cgroupInit is where machineScript puts the node's own processes with cgroup v2, which wants processes in leaves.
	cgroupInit = "init"
)

// A hierarchy is a mounted tree of cgroups.
type hierarchy struct {
	// path is where it is mounted.
	path string
	// options mount it again; empty for v2.
	options string
}

// A cgroupTree is a node's part of each hierarchy: the same name at the top of each.
type cgroupTree struct {
	name        string
	hierarchies []hierarchy
}

// newCgroupTree names a tree that is not there yet, and removes those that killed processes have left behind. The name ends with the
// process that owns the tree.
func newCgroupTree(name string) (cgroupTree, error) {
	hierarchies, err := findHierarchies()
	if err != nil {
		return cgroupTree{}, err
	}
	sweepCgroups(hierarchies)
	return cgroupTree{name: fmt.Sprintf("%s%s-%d", cgroupPrefix, name, os.Getpid()), hierarchies: hierarchies}, nil
}

// findHierarchies lists what the kubelet needs: the one of cgroup v2 where it has the controllers, those of v1 otherwise.
func findHierarchies() ([]hierarchy, error) {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var v1 []hierarchy
	for line := range strings.Lines(string(mountinfo)) {
		// ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [FIELDS…] - TYPE SOURCE SUPEROPTIONS
		mount, source, _ := strings.Cut(line, " - ")
		from, what := strings.Fields(mount), strings.Fields(source)
		if len(from) < 5 || len(what) < 3 || filepath.Dir(from[4]) != cgroupRoot && from[4] != cgroupRoot {
			continue
		}
		switch what[0] {
		case "cgroup2":
			if from[4] == cgroupRoot {
				return []hierarchy{{path: cgroupRoot}}, nil
			}
		case "cgroup":
			v1 = append(v1, hierarchy{path: from[4], options: v1Options(what[2])})
		}
	}
	for _, controller := range []string{"cpu", "cpuacct", "cpuset", "memory"} {
		if !slices.ContainsFunc(v1, func(h hierarchy) bool { return slices.Contains(strings.Split(h.options, ","), controller) }) {
			return nil, fmt.Errorf("no cgroups for %s below %s", controller, cgroupRoot)
		}
	}
	return v1, nil
}

// v1Options are the options that mount the same hierarchy again: its controllers, or its name.
func v1Options(super string) string {
	var options []string
	for option := range strings.SplitSeq(super, ",") {
		switch option {
		case "rw", "ro", "xattr", "clone_children", "noprefix":
		default:
			if name, named := strings.CutPrefix(option, "name="); named {
				options = append(options, "none", "name="+name)
			} else if !strings.Contains(option, "=") {
				options = append(options, option)
			}
		}
	}
	return strings.Join(options, ",")
}

func (t cgroupTree) v2() bool { return len(t.hierarchies) == 1 && t.hierarchies[0].options == "" }

// join are the files that a shell writes 0 to, to be in the tree; one a line.
func (t cgroupTree) join() string {
	var files []string
	for _, h := range t.hierarchies {
		files = append(files, filepath.Join(h.path, t.name, "cgroup.procs"))
	}
	return strings.Join(files, "\n")
}

// joinInside is join for the node's own processes after the first.
func (t cgroupTree) joinInside() string {
	if t.v2() {
		return filepath.Join(t.hierarchies[0].path, t.name, cgroupInit, "cgroup.procs")
	}
	return t.join()
}

// mounts are NAME OPTIONS of the hierarchies, one a line; empty with v2, where there is one.
func (t cgroupTree) mounts() string {
	if t.v2() {
		return ""
	}
	var lines []string
	for _, h := range t.hierarchies {
		lines = append(lines, filepath.Base(h.path)+" "+h.options)
	}
	return strings.Join(lines, "\n")
}

func (t cgroupTree) create() error {
	for _, h := range t.hierarchies {
		dir := filepath.Join(h.path, t.name)
		if t.v2() {
			enableControllers(h.path)
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// A new cpuset of v1 has neither CPUs nor memory.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			have, err := os.ReadFile(filepath.Join(h.path, file))
			if err != nil || t.v2() {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), have, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// enableControllers lets the groups below have what the group above has. One that can't be had is missed by the kubelet, which says so.
func enableControllers(dir string) {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for controller := range strings.FieldsSeq(string(have)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
}

// remove removes the tree; no process may be in it.
func (t cgroupTree) remove() error {
	var errs []error
	for _, h := range t.hierarchies {
		errs = append(errs, removeCgroup(filepath.Join(h.path, t.name)))
	}
	return errors.Join(errs...)
}

// removeCgroup removes a group and those below it. The kernel lets go of a group a moment after its last process has ended.
func removeCgroup(dir string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := removeCgroupNow(dir)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(pollEvery)
	}
}

func removeCgroupNow(dir string) error {
	dirs, err := cgroupsBelow(dir)
	if err != nil {
		return err
	}
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// cgroupsBelow are the group and all below it, parents first; none where it is gone.
func cgroupsBelow(dir string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	return dirs, err
}

// sweepCgroups removes trees whose owner is gone, and where no process is. A running node has its first process in there.
func sweepCgroups(hierarchies []hierarchy) {
	for _, h := range hierarchies {
		trees, err := filepath.Glob(filepath.Join(h.path, cgroupPrefix+"*"))
		if err != nil {
			continue
		}
		for _, tree := range trees {
			if !owned(tree) && !inhabited(tree) {
				_ = removeCgroupNow(tree)
			}
		}
	}
}

func owned(tree string) bool {
	owner, err := strconv.Atoi(tree[strings.LastIndex(tree, "-")+1:])
	return err != nil || !errors.Is(unix.Kill(owner, 0), unix.ESRCH)
}

func inhabited(tree string) bool {
	dirs, err := cgroupsBelow(tree)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		processes, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		return err != nil || len(bytes.TrimSpace(processes)) > 0
	})
}

// onOverlay says whether the directory is on an overlay file system, which can't carry another.
func onOverlay(dir string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Type == unix.OVERLAYFS_SUPER_MAGIC
}

// capacity is what the kubelet will find: CPUs and bytes of memory.
func capacity() (cpus, memory int64, err error) {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(info)) {
		if strings.HasPrefix(line, "processor") {
			cpus++
		}
	}
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		if _, err = fmt.Sscanf(scanner.Text(), "MemTotal: %d kB", &memory); err == nil {
			return cpus, memory << 10, nil
		}
	}
	return 0, 0, fmt.Errorf("no MemTotal in /proc/meminfo: %w", cmp.Or(err, fs.ErrNotExist))
}
