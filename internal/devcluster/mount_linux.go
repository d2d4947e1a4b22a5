package devcluster

import "syscall"

func mountBinfmt() error { return syscall.Mount("binfmt_misc", binfmtDir, "binfmt_misc", 0, "") }
