package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/evanw/esbuild/pkg/api"
)

// importer is the file that asks for a module. A module that the loader's own entry asks for, jr2.config.ts or a Workflow, is the
// folder's own: what is wrong with it is told of itself.
func importer(args api.OnResolveArgs) string {
	if args.Namespace == virtual && filepath.IsAbs(args.Path) {
		return args.Path
	}
	return args.Importer
}

// unresolved says why an import leads nowhere, and of which file that is to be told. A path that leaves the folder is told apart even
// when nothing is there.
func (b *bundler) unresolved(args api.OnResolveArgs, err error) api.OnResolveResult {
	fail := func(err error) api.OnResolveResult {
		message := api.Message{Text: err.Error(), Detail: err}
		if own := importer(args); own != args.Importer {
			message.Location = &api.Location{File: own}
		}
		return api.OnResolveResult{Errors: []api.Message{message}}
	}
	var broken *manifestError
	if errors.As(err, &broken) {
		at := &api.Location{File: broken.path, Line: broken.line, Column: broken.column}
		return api.OnResolveResult{Errors: []api.Message{{Text: brokenText(reason(broken.err).Error()), Location: at}}}
	}
	var outside *OutsideError
	if errors.As(err, &outside) {
		return fail(&OutsideError{Importer: importer(args), Path: outside.Path})
	}
	if !strings.HasPrefix(args.Path, ".") && !strings.HasPrefix(args.Path, "/") {
		if errors.Is(err, errNotFound) {
			err = errors.New("is not installed in the Instance folder — add it to package.json and install")
		}
		return fail(fmt.Errorf("package %q %w", shownURL(args.Path), err))
	}
	target := args.Path
	if !filepath.IsAbs(target) {
		target = filepath.Join(args.ResolveDir, target)
	}
	what := strconv.Quote(shownURL(args.Path)) + " "
	if importer(args) == args.Path {
		what = "" // the message names the file already
	}
	return fail(errors.New(what + b.fence.notAFile(target)))
}

// notAFile says what stands in the place of a module's file.
func (f *fence) notAFile(target string) string {
	p, rel, ok := f.inside(target)
	if !ok {
		return "lies outside"
	}
	info, err := p.Lstat(rel)
	switch {
	case err != nil && !os.IsNotExist(err) && !isNotDir(err):
		return fmt.Sprintf("cannot be opened: %v", reason(err))
	case err != nil:
		return "is not there"
	case info.IsDir():
		return "is a folder, not a module"
	case info.Mode()&os.ModeSymlink != 0:
		at, _ := p.Readlink(rel) //nolint:errcheck // then the text says less
		_, _, err := f.stat(target)
		switch {
		case errors.Is(err, syscall.ELOOP):
			return fmt.Sprintf("is a symbolic link to %q, which leads back to itself", clip(at))
		case os.IsNotExist(err):
			return fmt.Sprintf("is a symbolic link to %q, which is not there", clip(at))
		case err != nil:
			return fmt.Sprintf("is a symbolic link to %q, which cannot be opened: %v", clip(at), reason(err))
		}
		return fmt.Sprintf("is a symbolic link to %q, which is no module", clip(at))
	}
	return "is there but cannot be read as a module"
}

// reason is the cause of a file error without its path, which the message has already.
func reason(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func brokenText(why string) string { return "is no sound package.json: " + why }

// brokenPackage finds the message of the bundler that blames a package.json.
func brokenPackage(messages []api.Message) (api.Message, bool) {
	for _, message := range messages {
		if message.Location != nil && filepath.Base(message.Location.File) == "package.json" {
			if !strings.HasPrefix(message.Text, brokenText("")) {
				message.Text = brokenText(message.Text)
			}
			return message, true
		}
	}
	return api.Message{}, false
}
