package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jr2.dev/jr2/config"
)

// evaluateName is the command by which this program evaluates a folder in a process of its own.
const evaluateName = "evaluate"

// folderOf says whose the Instance folder is.
type folderOf struct{ untrusted bool }

func (f *folderOf) flag(flags *pflag.FlagSet) {
	flags.BoolVar(&f.untrusted, "untrusted", false, "the folder is somebody else's: run nothing that it brings, which leaves its types unchecked, read nothing "+
		"above it, and evaluate it in a process of its own")
}

// reading gives how the folder around dir is read: the outermost folder to open, and the command that evaluates it.
func (f *folderOf) reading(dir string) (outermost string, isolate []string, err error) {
	if !f.untrusted {
		outermost, err = config.FindWorkspace(dir)
		if errors.As(err, new(*config.NotFoundError)) {
			err = nil // what needs the folder says so
		}
		return outermost, nil, err
	}
	own, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("--untrusted: %w", err)
	}
	return "", []string{own, evaluateName}, nil
}

func evaluateCommand(streams Streams) *cobra.Command {
	return &cobra.Command{
		Use: evaluateName, Hidden: true, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return config.ServeIsolated(command.Context(), streams.In, streams.Out)
		},
	}
}
