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

// maybeComputed tells some modules from those that may call import or require; a name may be spelled with escapes. What stands between the
// word and its parenthesis is no help: white space of JavaScript is more than what \s means here.
var maybeComputed = regexp.MustCompile(`import|require|\\u`)

// computed is such an import in the text that the bundler's own printer makes: comments only where it keeps them, TypeScript and constants of
// enums replaced. It may also be a part of a string, which nothing here tells apart.
var computed = regexp.MustCompile(`\b(?:import(?:\.[a-z]+)?|(?:__)?require)(?:\?\.)?\((?:\s|/\*(?s:.*?)\*/|//[^\n]*\n)*` +
	"(?:`(?:[^`\\\\]|\\\\.)*\\$\\{|" + `"(?:[^"\\\n]|\\.)*"\s*(?:/\*(?s:.*?)\*/\s*)?\+|'(?:[^'\\\n]|\\.)*'\s*(?:/\*(?s:.*?)\*/\s*)?\+` + "|`(?:[^`\\\\]|\\\\.)*`\\s*\\+)")

// refuseComputed gives the message about an import with a computed path; false when there is none.
func refuseComputed(file string, source []byte, loader api.Loader) (api.Message, bool) {
	if loader == api.LoaderJSON || !maybeComputed.Match(source) {
		return api.Message{}, false
	}
	// In the second form a choice within the parentheses is two calls, as the bundler sees it: require(c ? "../" + x : y).
	for _, format := range []api.Format{api.FormatDefault, api.FormatESModule} {
		printed := api.Transform(string(source), api.TransformOptions{
			Loader: loader, TsconfigRaw: tsconfig, Format: format, Target: api.ESNext, Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent,
		})
		if len(printed.Errors) > 0 {
			return api.Message{}, false // the bundler tells them, and gets no further
		}
		if found := computed.Find(printed.Code); found != nil {
			return computedMessage(file, found), true
		}
	}
	return api.Message{}, false
}

func computedMessage(file string, found []byte) api.Message {
	shown := clip(strings.Join(strings.Fields(string(found)), " "))
	return api.Message{
		Text:     fmt.Sprintf("%s …: a path that is put together at run time can't be bundled — import each module by its name", shown),
		Location: &api.Location{File: file},
	}
}
