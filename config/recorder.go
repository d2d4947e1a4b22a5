package config

import (
	"embed"
	"strings"
)

// recorder holds the JavaScript that stands in for @jr2/*, for xstate and zod where an Instance has none, and for what a
// server-side runtime gives to modules.
//
//go:embed recorder/*.js recorder/*.cjs
var recorder embed.FS

func recorded(name string) string {
	text, err := recorder.ReadFile("recorder/" + name)
	if err != nil {
		return "" // the names are constants of this package; a test reads them all
	}
	return string(text)
}

// nodeModules are the built-in modules that an import may name, with or without "node:".
const nodeModules = " assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl sea sqlite stream string_decoder test timers tls trace_events tty url util v8 vm wasi worker_threads zlib "

// nodeBuiltin gives the name of a built-in module without its prefix. Packages of the same name exist only without the prefix and
// lose to the built-in one, as in Node.
func nodeBuiltin(specifier string) (string, bool) {
	name, prefixed := strings.CutPrefix(specifier, "node:")
	first, _, _ := strings.Cut(name, "/")
	known := first != "" && strings.Contains(nodeModules, " "+first+" ")
	return name, prefixed || known
}
