package config

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// ConfigModule is the name of the configuration among the Modules of an Instance.
const ConfigModule = "jr2.config"

// AssemblyRoot is where the Instance folder stands for the modules of an Assembly: import.meta.url and import.meta.resolve of a
// file in the folder give a URL below it, whatever the folder's place on the host was. An image context that a Workflow names by
// such a URL has the key AssemblyURL(context.Key) in the cluster.
const AssemblyRoot = "file:///instance/"

// AssemblyURL gives the URL under which modules of an Assembly name a file of the Instance folder. A URL outside of the folder,
// and a registry ref, are given back as they are.
func (i *Instance) AssemblyURL(image string) string {
	if i.Root == "" {
		return image
	}
	rest, ok := strings.CutPrefix(image, FileURL(i.Root)+"/")
	if !ok {
		return image
	}
	return AssemblyRoot + rest
}

// bundleModules makes the modules that the Orchestrator evaluates: one ES module for the configuration and one per Workflow. They
// hold everything that they import from the folder and from its packages, except @jr2/*, xstate, zod and node:*, which the
// Orchestrator brings. The same sources give the same bytes wherever the folder lies.
//
// The bundler accepts TypeScript that a type-stripping Node refuses (enum, namespace with values, parameter properties, import =,
// decorators). The Orchestrator is handed the bundle, so such a Workflow works; one that strips types from the sources would not.
func bundleModules(ctx context.Context, fence *fence, names []string) ([]Module, error) {
	fence.restart()
	b := &bundler{fence: fence, stubs: map[string]bool{}, readsEnv: map[string]bool{}}
	b.resolver = &nodeResolver{fence: fence, conditions: conditionsOf(true), manifests: map[string]*manifest{}}
	entries := []api.EntryPoint{{InputPath: filepath.Join(fence.root, ConfigFile), OutputPath: ConfigModule}}
	for _, name := range names {
		entries = append(entries, api.EntryPoint{InputPath: workflowFile(fence.root, name), OutputPath: "workflows/" + name})
	}
	result, err := build(ctx, api.BuildOptions{
		EntryPointsAdvanced: entries,
		Bundle:              true,
		Write:               false,
		LogLevel:            api.LogLevelSilent,
		LogLimit:            20,
		AbsWorkingDir:       fence.root,
		Outdir:              fence.root,
		OutExtension:        map[string]string{".js": ".mjs"},
		Format:              api.FormatESModule,
		Platform:            api.PlatformNode,
		TsconfigRaw:         tsconfig,
		Charset:             api.CharsetUTF8,
		Target:              api.ES2022,
		LegalComments:       api.LegalCommentsNone,
		Plugins:             []api.Plugin{{Name: "assembly", Setup: b.setupModules}},
	})
	if err != nil {
		return nil, asModuleError(fence.root, err, names)
	}
	if len(result.Errors) > 0 {
		return nil, b.moduleError(result.Errors)
	}
	texts := map[string][]byte{}
	for _, file := range result.OutputFiles {
		rel, err := filepath.Rel(fence.root, file.Path)
		if err != nil {
			return nil, err
		}
		texts[strings.TrimSuffix(filepath.ToSlash(rel), ".mjs")] = file.Contents
	}
	modules := []Module{{Name: ConfigModule, Source: texts[ConfigModule]}}
	for _, name := range names {
		modules = append(modules, Module{Name: name, Source: texts["workflows/"+name]})
	}
	return modules, nil
}

func (b *bundler) setupModules(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(args api.OnResolveArgs) (api.OnResolveResult, error) {
		if args.Kind == api.ResolveEntryPoint {
			return api.OnResolveResult{Path: args.Path, Namespace: "file"}, nil
		}
		if _, builtin := nodeBuiltin(args.Path); builtin || broughtByOrchestrator(args.Path) {
			return api.OnResolveResult{Path: args.Path, External: true, SideEffects: api.SideEffectsFalse}, nil
		}
		return b.resolveOutward(args)
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: "file"}, b.loadForAssembly)
}

func broughtByOrchestrator(specifier string) bool {
	return strings.HasPrefix(specifier, "@jr2/") || isStandIn(specifier)
}

func (b *bundler) loadForAssembly(args api.OnLoadArgs) (api.OnLoadResult, error) {
	loader, ok := loaderOf(args.Path)
	if !ok {
		return api.OnLoadResult{}, fmt.Errorf("%s is no module: .ts, .js and .json files are", filepath.Base(args.Path))
	}
	source, err := b.fence.source(args.Path)
	if err != nil {
		return notOpened(args.Path, err), nil
	}
	if message, ok := refuseComputed(args.Path, source, loader); ok {
		return api.OnLoadResult{Errors: []api.Message{message}}, nil
	}
	if loader == api.LoaderJSON || !strings.Contains(string(source), "import.meta") {
		text := string(source)
		return api.OnLoadResult{Contents: &text, Loader: loader}, nil
	}
	return withMeta(filepath.Base(args.Path), source, loader, b.assemblyMeta(args.Path), api.SourceMapNone)
}

// assemblyMeta declares the import.meta of a module by its place below AssemblyRoot.
func (b *bundler) assemblyMeta(file string) string {
	rel, err := filepath.Rel(b.fence.root, file)
	if err != nil || !filepath.IsLocal(rel) {
		rel = filepath.Join("node_modules", filepath.Base(file)) // a package of the workspace: it stands nowhere in the Assembly
	}
	rel = filepath.ToSlash(rel)
	base := AssemblyRoot + strings.TrimPrefix(FileURL("/"+rel), "file:///")
	return fmt.Sprintf("var %s = { url: %q, filename: %q, dirname: %q, resolve: (s) => /^(\\.{0,2}\\/|[A-Za-z][A-Za-z0-9+.-]*:)/.test(s) ? new URL(s, %q).href : import.meta.resolve(s) };",
		metaName, base, "/instance/"+rel, strings.TrimSuffix("/instance/"+filepath.ToSlash(filepath.Dir(rel)), "/."), base)
}
