package config

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// loaders are the kinds of files that Node imports; it refuses the others, so a bundle must not take them either.
func loaderOf(name string) (api.Loader, bool) {
	switch filepath.Ext(name) {
	case ".ts", ".mts", ".cts":
		return api.LoaderTS, true
	case ".js", ".mjs", ".cjs":
		return api.LoaderJS, true
	case ".json":
		return api.LoaderJSON, true
	}
	return api.LoaderNone, false
}

func (b *bundler) loadVirtual(args api.OnLoadArgs) (api.OnLoadResult, error) {
	text, loader := "", api.LoaderJS
	name := strings.TrimPrefix(args.Path, "jr2:")
	switch kind, rest, _ := strings.Cut(name, "/"); {
	case args.Path == entryName:
		text = b.entry
	case kind == "mark":
		text = "import { mark } from \"jr2:state\"; mark(" + rest + ");"
	case kind == "node":
		text = fmt.Sprintf("module.exports = require(\"jr2:builtin\")(%q);", rest)
	case kind == "builtin":
		text = recorded("node.cjs")
	case kind == "zod":
		text = recorded("zod.cjs")
	default:
		text = recorded(name + ".js")
	}
	if text == "" {
		return api.OnLoadResult{}, fmt.Errorf("there is no module %q", clip(args.Path))
	}
	return api.OnLoadResult{Contents: &text, Loader: loader, ResolveDir: b.fence.root}, nil
}

// moduleEnd follows the text of every module. Where the bundler stumbles over it, the file ends too early.
const moduleEnd = "export {/* the end of the file */};"

func (b *bundler) loadFile(args api.OnLoadArgs) (api.OnLoadResult, error) {
	loader, ok := loaderOf(args.Path)
	if !ok {
		return api.OnLoadResult{}, fmt.Errorf("%s is no module: .ts, .js and .json files are", filepath.Base(args.Path))
	}
	source, err := b.fence.source(args.Path)
	if err != nil {
		return notOpened(args.Path, err), nil
	}
	if !strings.Contains(args.Path, "/node_modules/") && loader == api.LoaderTS {
		source = append(source, "\n"+moduleEnd+"\n"...) // a file without any import or export is still a module
	}
	if message, ok := refuseComputed(args.Path, source, loader); ok {
		return api.OnLoadResult{Errors: []api.Message{message}}, nil
	}
	if bytes.Contains(source, []byte("process.env")) && !strings.Contains(args.Path, "/node_modules/") {
		b.mu.Lock()
		b.readsEnv[args.Path] = true
		b.mu.Unlock()
	}
	hasMeta := bytes.Contains(source, []byte("import.meta"))
	// The bundler would open the source map that a comment names, wherever that is: printed anew, the module has no such comment.
	if loader == api.LoaderJSON || !hasMeta && !bytes.Contains(source, []byte("sourceMappingURL")) {
		text := string(source)
		return api.OnLoadResult{Contents: &text, Loader: loader}, nil
	}
	banner := ""
	if hasMeta {
		banner = fmt.Sprintf("var %s = jr2host.meta(%q);", metaName, args.Path)
	}
	return withMeta(args.Path, source, loader, banner, api.SourceMapInline)
}

func notOpened(name string, err error) api.OnLoadResult {
	return api.OnLoadResult{Errors: []api.Message{{Text: err.Error(), Detail: err, Location: &api.Location{File: name}}}}
}

const metaName = "jr2_import_meta"

// withMeta gives one module its own import.meta. A definition for the whole bundle would not do: the URL differs per module.
func withMeta(name string, source []byte, loader api.Loader, banner string, maps api.SourceMap) (api.OnLoadResult, error) {
	result := api.Transform(string(source), api.TransformOptions{
		Loader:      loader,
		Sourcefile:  name,
		Sourcemap:   maps,
		TsconfigRaw: tsconfig,
		Format:      api.FormatDefault,
		Target:      api.ESNext,
		Charset:     api.CharsetUTF8,
		LogLevel:    api.LogLevelSilent,
		Define:      map[string]string{"import.meta": metaName},
		Banner:      banner,
	})
	if len(result.Errors) > 0 {
		return api.OnLoadResult{Errors: result.Errors}, nil
	}
	text := string(result.Code)
	return api.OnLoadResult{Contents: &text, Loader: api.LoaderJS}, nil
}
