// Package preflight says what is wrong with a cluster, a namespace or an Instance before anything is written there.
//
// It decides which facts stop a converge and how each is said: every check returns Findings, values with a severity, a stable code,
// the object, the reason and the fix. It reads what it must and it never writes: a probe of the API server is a dry run. A check
// that cannot look returns its error; "not found" is never inferred from another error.
package preflight
