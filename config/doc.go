// Package config says what an Instance is: the configuration of jr2.config.ts, the Workflows and what they need, the sizes of
// their Workspaces.
//
// It decides how a folder becomes an Instance (Load), what is a valid one (Validate) and how large a Sandbox is (Sizes). It does not
// know any cluster, registry or builder, and it reads nothing outside the folder. The folder is untrusted input: its code runs
// without host objects, within a time and a memory bound, and sees only the environment that the caller passes.
package config
