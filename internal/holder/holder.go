// Package holder names this process as the holder of a lock, and tells whether another holder of this machine has ended.
//
// It decides only what it can know: a holder on another machine, in another pid namespace or from before the last boot is never
// called gone; its lock expires. Where /proc is missing nothing is known.
package holder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
)

// Self is the identity of this process, for people and for Gone: "ana@laptop, process 123 (9f86d081884c:4711)". In the parentheses
// stand the machine, as far as process ids of this process mean the same there, and when the process began.
func Self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	name := "unknown user"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	began, err := beginning(os.Getpid())
	if err != nil {
		return fmt.Sprintf("%s@%s, process %d", name, host, os.Getpid())
	}
	return fmt.Sprintf("%s@%s, process %d (%s:%s)", name, host, os.Getpid(), machine(), began)
}

var identity = regexp.MustCompile(`, process (\d+) \(([0-9a-f]+):(\d+)\)$`)

// Gone says whether an identity made by Self names a process of this machine that has ended. It says no when it cannot know.
func Gone(holder string) bool {
	parts := identity.FindStringSubmatch(holder)
	if parts == nil || parts[2] != machine() {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return false
	}
	began, err := beginning(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && began != parts[3] // the id belongs to a younger process
}

// machine is a hash of the boot and of the pid namespace, "" where they can't be read.
func machine() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(boot)) + " " + namespace))
	return hex.EncodeToString(sum[:6])
}

// beginning is when a process began, in clock ticks since boot. A process that has ended and was not yet waited for counts as ended.
func beginning(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the command in parentheses, which may hold anything.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	if fields[0] == "Z" {
		return "", fs.ErrNotExist
	}
	return fields[19], nil
}
