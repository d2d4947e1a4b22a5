//go:build !linux

package devcluster

import "errors"

func mountBinfmt() error { return errors.ErrUnsupported }
