// Package config says what an Instance is: the configuration of jr2.config.ts, the Workflows and what they need, the sizes of
// their Workspaces.
//
// It decides how a folder becomes an Instance (Load), what is a valid one (Validate, CheckHeldSecrets), how large a Sandbox is
// (Sizes), what a repository's url means (ParseRepoURL) and what a .env file says (ParseDotEnv, MergeEnv). It does not know any
// cluster, registry or builder, and it reads nothing outside the folder. What is wrong is told all at once, with what could be read.
//
// The folder is untrusted input. Its modules are bundled with esbuild and evaluated with goja, in this process: they see no file, no
// network, no timer, and only the environment that the caller passes; imports stay inside the folder, also through symbolic links;
// time and memory are bounded. What a bound inside of one process cannot contain (LoadOptions.Isolate names it) is contained by
// evaluating in a process of its own.
//
// The authoring functions of @jr2/orchestrator are stood in for by recorder/*.js, which builds inert Machines and remembers what a
// converge needs. xstate and zod are the folder's own when it has them, else stand-ins.
package config
