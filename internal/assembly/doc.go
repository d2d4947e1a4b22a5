// Package assembly makes the Assembly of an Instance, the code that its Orchestrator evaluates, and stores it in the cluster.
//
// It decides what is in an Assembly, how its hash is made and how the store changes from one Assembly to the next without ever
// holding a mix of two. It does not bundle modules (package config does), it does not hash image contexts (package images does),
// and it does not ask an Orchestrator whether it has loaded what is stored. docs/assembly.md describes the format.
package assembly
