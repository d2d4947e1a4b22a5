package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// The bundler turns an import whose path is put together at run time, import("./steps/" + name), into all files that the path could mean, and
// looks for them in the file system itself, also far outside of the folder. There is no option to keep it from that, so such an import is
// refused before the bundler sees it.

// maybeComputed tells most modules from those that may call import or require; a name may be spelled with escapes.
var maybeComputed = regexp.MustCompile(`\b(?:import|require)\s*[/(?.]|\\u`)

// computed is such an import in the text that the bundler's own printer makes: comments only where it keeps them, TypeScript and constants of
// enums replaced. It may also be a part of a string, which nothing here tells apart.
var computed = regexp.MustCompile(`\b(?:import(?:\.[a-z]+)?|require)(?:\?\.)?\((?:\s|/\*(?s:.*?)\*/|//[^\n]*\n)*` +
	"(?:`[^`\\\\]*\\$\\{|" + `"(?:[^"\\\n]|\\.)*"\s*(?:/\*(?s:.*?)\*/\s*)?\+|'(?:[^'\\\n]|\\.)*'\s*(?:/\*(?s:.*?)\*/\s*)?\+` + "|`(?:[^`\\\\]|\\\\.)*`\\s*\\+)")

// refuseComputed gives the message about an import with a computed path; false when there is none.
func refuseComputed(file string, source []byte, loader api.Loader) (api.Message, bool) {
	if loader == api.LoaderJSON || !maybeComputed.Match(source) {
		return api.Message{}, false
	}
	printed := api.Transform(string(source), api.TransformOptions{
		Loader: loader, TsconfigRaw: tsconfig, Target: api.ESNext, Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent,
	})
	if len(printed.Errors) > 0 {
		return api.Message{}, false // the bundler tells them, and gets no further
	}
	found := computed.Find(printed.Code)
	if found == nil {
		return api.Message{}, false
	}
	shown := clip(strings.Join(strings.Fields(string(found)), " "))
	return api.Message{
		Text:     fmt.Sprintf("%s …: a path that is put together at run time can't be bundled — import each module by its name", shown),
		Location: &api.Location{File: file},
	}, true
}
