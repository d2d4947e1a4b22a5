package config

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// A bundler turns modules of an Instance into one script for the evaluator, with @jr2/* replaced by the recorder.
type bundler struct {
	fence *fence
	// entry is the text of the virtual module that the bundle starts from; empty for the modules of an Assembly.
	entry    string
	resolver *nodeResolver

	mu sync.Mutex
	// stubs are the packages that the Instance does not have and that stand-ins replaced.
	stubs map[string]bool
	// readsEnv are the modules of the folder that speak of process.env.
	readsEnv map[string]bool
}

// A script is a bundle and the map from its places to those of the sources.
type script struct {
	code      string
	sourceMap []byte
}

const (
	virtual   = "jr2"        // namespace of modules that are no files
	entryName = "jr2:entry"  // the virtual entry
	tsconfig  = `{}`         // given as text, so that no tsconfig.json is read
	bundleOut = "jr2.out.js" // never written
)

// conditionsOf are the conditions of packages' exports that hold in a bundle.
func conditionsOf(assembly bool) []string {
	if assembly {
		return []string{"import", "node"}
	}
	return []string{"import"}
}

func (b *bundler) bundle(ctx context.Context) (script, error) {
	b.stubs, b.readsEnv = map[string]bool{}, map[string]bool{}
	b.resolver = &nodeResolver{fence: b.fence, conditions: conditionsOf(false), manifests: map[string]*manifest{}}
	options := api.BuildOptions{
		EntryPoints:   []string{entryName},
		Bundle:        true,
		Write:         false,
		LogLevel:      api.LogLevelSilent,
		LogLimit:      20,
		AbsWorkingDir: b.fence.root,
		Outfile:       filepath.Join(b.fence.root, bundleOut),
		Format:        api.FormatESModule,
		Platform:      api.PlatformNeutral,
		TsconfigRaw:   tsconfig,
		Sourcemap:     api.SourceMapExternal,
		// Without it the bundler reads each source that an inline map of a module names, wherever that is.
		SourcesContent: api.SourcesContentExclude,
		Charset:        api.CharsetUTF8,
		Target:         api.ES2022,
		// What the evaluator's parser does not know, and big integers, which the guards leave out.
		Supported: map[string]bool{
			"async-generator": false, "for-await": false, "class-private-brand-check": false, "decorators": false,
			"using": false, "dynamic-import": false, "bigint": false, "exponent-operator": false, "import-meta": true,
			"regexp-set-notation": false, "regexp-match-indices": false, "top-level-await": true,
		},
		Plugins: []api.Plugin{{Name: virtual, Setup: b.setup}},
	}
	result, err := build(ctx, options)
	if err != nil {
		return script{}, err
	}
	if len(result.Errors) > 0 {
		return script{}, b.moduleError(result.Errors)
	}
	var out script
	for _, file := range result.OutputFiles {
		if strings.HasSuffix(file.Path, ".map") {
			out.sourceMap = file.Contents
		} else {
			out.code = string(file.Contents)
		}
	}
	return out, nil
}

// build runs the bundler and gives up when ctx ends; the bundler itself ends a little later.
func build(ctx context.Context, options api.BuildOptions) (api.BuildResult, error) {
	active, failed := api.Context(options)
	if failed != nil {
		return api.BuildResult{Errors: failed.Errors}, nil
	}
	done := make(chan api.BuildResult, 1)
	go func() {
		done <- active.Rebuild()
		active.Dispose()
	}()
	select {
	case result := <-done:
		if ctx.Err() != nil {
			return result, timeoutOf(ctx)
		}
		return result, nil
	case <-ctx.Done():
		go active.Cancel()
		return api.BuildResult{}, timeoutOf(ctx)
	}
}

func (b *bundler) setup(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, b.resolve)
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: virtual}, b.loadVirtual)
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "file"}, b.loadFile)
}

func (b *bundler) resolve(args api.OnResolveArgs) (api.OnResolveResult, error) {
	ours := func(name string) (api.OnResolveResult, error) {
		return api.OnResolveResult{Path: name, Namespace: virtual, SideEffects: sideEffects(name)}, nil
	}
	switch {
	case args.Path == entryName && args.Kind == api.ResolveEntryPoint:
		return ours(entryName)
	case strings.HasPrefix(args.Path, "jr2:") && args.Namespace == virtual:
		return ours(args.Path)
	case args.Path == "@jr2/orchestrator", args.Path == "@jr2/agent-protocol":
		return ours("jr2:" + strings.TrimPrefix(strings.TrimPrefix(args.Path, "@jr2/"), "agent-"))
	case strings.HasPrefix(args.Path, "@jr2/orchestrator/"), strings.HasPrefix(args.Path, "@jr2/agent-protocol/"):
		return api.OnResolveResult{}, fmt.Errorf("%q reaches into a package — import from @jr2/orchestrator", shownURL(args.Path))
	}
	if args.Namespace == "file" || args.Importer == entryName || isStandIn(args.Path) {
		return b.resolveOutward(args)
	}
	return api.OnResolveResult{}, fmt.Errorf("cannot import %q", shownURL(args.Path))
}

// sideEffects lets the bundler drop what a bundle does not use of the recorder; a mark exists for its effect alone.
func sideEffects(name string) api.SideEffects {
	if name == entryName || strings.HasPrefix(name, "jr2:mark/") {
		return api.SideEffectsTrue
	}
	return api.SideEffectsFalse
}

// isStandIn says whether a package has a stand-in, and so may be missing.
func isStandIn(specifier string) bool {
	name, _, _ := strings.Cut(specifier, "/")
	return name == "xstate" || name == "zod"
}

func (b *bundler) resolveOutward(args api.OnResolveArgs) (api.OnResolveResult, error) {
	if strings.Contains(args.Path, "://") || strings.HasPrefix(args.Path, "data:") {
		return api.OnResolveResult{}, fmt.Errorf("cannot import %q: modules come from the folder, not from a network or a text", shownURL(args.Path))
	}
	if name, ok := nodeBuiltin(args.Path); ok {
		return b.builtin(name), nil
	}
	dir := args.ResolveDir
	if args.Namespace == virtual {
		dir = b.fence.root
	}
	found, err := b.resolver.resolve(args.Path, dir, args.Kind)
	switch {
	case errors.Is(err, errBuiltin):
		return b.builtin(strings.TrimPrefix(found.path, "node:")), nil
	case err != nil && isStandIn(args.Path) && !errors.As(err, new(*manifestError)): // also where some folder above has it, which is not the Instance's
		return b.standIn(args.Path), nil
	case err != nil:
		return b.unresolved(args, err), nil
	}
	return api.OnResolveResult{Path: found.path, Namespace: "file", Suffix: found.suffix, SideEffects: effects(found.sideEffects)}, nil
}

// builtin is a module of Node: it stays an import of an Assembly, and is stood in for where modules are evaluated.
func (b *bundler) builtin(name string) api.OnResolveResult {
	if b.entry == "" {
		return api.OnResolveResult{Path: "node:" + name, External: true, SideEffects: api.SideEffectsFalse}
	}
	return api.OnResolveResult{Path: "jr2:node/" + name, Namespace: virtual, SideEffects: api.SideEffectsFalse}
}

func effects(has bool) api.SideEffects {
	if has {
		return api.SideEffectsTrue
	}
	return api.SideEffectsFalse
}

func (b *bundler) standIn(specifier string) api.OnResolveResult {
	name, _, _ := strings.Cut(specifier, "/")
	b.mu.Lock()
	b.stubs[name] = true
	b.mu.Unlock()
	return api.OnResolveResult{Path: "jr2:" + name, Namespace: virtual, SideEffects: api.SideEffectsFalse}
}

// moduleError gives the first error of the bundler, jr2.config.ts and workflows/ before packages.
func (b *bundler) moduleError(messages []api.Message) error {
	first := messages[0]
	if broken, ok := brokenPackage(messages); ok {
		first = broken
	}
	out := &ModuleError{Rule: "syntax", Problem: strings.TrimSpace(first.Text)}
	if at := first.Location; at != nil && !strings.Contains(at.File, "jr2:") {
		out.File = at.File
		if !filepath.IsAbs(out.File) {
			out.File = filepath.Join(b.fence.root, at.File)
		}
		if at.Line > 0 {
			out.Line, out.Column = at.Line, at.Column+1
		}
		if at.LineText == moduleEnd {
			out.Line, out.Column, out.Problem = at.Line-1, 1, "the file ends too early: something that it opens is not closed"
		}
	}
	out.Workflow = workflowOf(b.fence.root, out.File)
	var outside *OutsideError
	if err, ok := first.Detail.(error); ok && errors.As(err, &outside) {
		out.Rule, out.Err = "outside", outside
		if outside.Importer == "" {
			outside.Importer = out.File
		}
		if out.File == "" {
			out.File = outside.Importer
			out.Workflow = workflowOf(b.fence.root, out.File)
		}
		out.Problem = fmt.Sprintf("imports %s, which is outside the Instance folder", outside.Path)
	}
	return out
}

// workflowOf names the Workflow whose module a file is; empty for any other file.
func workflowOf(root, file string) string {
	name, ok := strings.CutSuffix(filepath.Base(file), ".ts")
	if !ok || filepath.Dir(file) != filepath.Join(root, workflowsDir) || !isWorkflowFile(filepath.Base(file)) {
		return ""
	}
	return name
}
