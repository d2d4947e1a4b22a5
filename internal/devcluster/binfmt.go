package devcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// binfmtDir is where the kernel lists the interpreters of foreign executables. Registering one takes root, the mount
//
//	mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
//
// and a statically linked interpreter, such as those of Debian's qemu-user-static. .ci/deps.sh installs the interpreter;
// RegisterBinfmt mounts and registers.
const binfmtDir = "/proc/sys/fs/binfmt_misc"

// ErrNoBinfmt is the cause where interpreters can't be registered here.
var ErrNoBinfmt = errors.New("foreign executables can't be made to run here")

// An emulator is how the kernel knows the executables of an architecture: the head of their ELF file.
type emulator struct{ interpreter, magic, mask string }

const elfMask = `\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff`

func emulators() map[string]emulator {
	return map[string]emulator{
		"arm64": {
			interpreter: "qemu-aarch64-static",
			magic:       `\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`,
			mask:        elfMask + `\xfe\xff\xff\xff`,
		},
		"s390x": {
			interpreter: "qemu-s390x-static",
			magic:       `\x7fELF\x02\x02\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x16`,
			mask:        elfMask + `\xff\xfe\xff\xff`,
		},
	}
}

func binfmtName(arch string) string { return filepath.Join(binfmtDir, "devcluster-"+arch) }

// Emulated reports whether RegisterBinfmt's interpreter for the architecture is there.
func Emulated(arch string) bool {
	_, err := os.Stat(binfmtName(arch))
	return err == nil
}

// RegisterBinfmt lets this machine run executables of the architecture (arm64, s390x). It holds for the whole machine and
// all its processes until unregister, or until it is switched off.
func RegisterBinfmt(arch string) (unregister func() error, err error) {
	e, ok := emulators()[arch]
	if !ok {
		return nil, fmt.Errorf("%w: no interpreter known for %s", ErrNoBinfmt, arch)
	}
	interpreter := filepath.Join("/usr/bin", e.interpreter)
	if _, err := os.Stat(interpreter); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBinfmt, err)
	}
	register := filepath.Join(binfmtDir, "register")
	if _, err := os.Stat(register); err != nil {
		if err := mountBinfmt(); err != nil {
			return nil, fmt.Errorf("%w: mount %s: %w", ErrNoBinfmt, binfmtDir, err)
		}
	}
	if err := UnregisterBinfmt(arch); err != nil {
		return nil, err
	}
	// F: the kernel opens the interpreter now, so it is found in a build's root file system too. P: the program keeps its own
	// argv[0], by which busybox knows what it is to be.
	line := fmt.Sprintf(":%s:M::%s:%s:%s:PF", filepath.Base(binfmtName(arch)), e.magic, e.mask, interpreter)
	if err := writeExisting(register, line); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBinfmt, err)
	}
	return func() error { return UnregisterBinfmt(arch) }, nil
}

// UnregisterBinfmt undoes RegisterBinfmt. It is no error where nothing is registered.
func UnregisterBinfmt(arch string) error {
	err := writeExisting(binfmtName(arch), "-1")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeExisting never creates: these files are the kernel's.
func writeExisting(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}
