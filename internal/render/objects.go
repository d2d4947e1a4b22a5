package render

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"jr2.dev/jr2/config"
)

// Namespace renders the Namespace of the Instance, with its owner label alone.
func Namespace(in Input) *corev1.Namespace { panic("unfinished") }

// PriorityClasses renders the classes that the configuration leaves out: jr2-control, then jr2-sandbox.
func PriorityClasses(in Input) []*schedulingv1.PriorityClass { panic("unfinished") }

// Operator renders the shared operator.
func Operator(in Input) ([]runtime.Object, error) { panic("unfinished") }

// Instance renders what every Instance has.
func Instance(in Input) ([]runtime.Object, error) { panic("unfinished") }

// RepoCache renders the Repo cache; nil when no registered Machine makes a Sandbox.
func RepoCache(in Input) ([]runtime.Object, error) { panic("unfinished") }

// InstanceHarness renders the Instance Harness; nil when every Agent has a Workspace.
func InstanceHarness(in Input) ([]runtime.Object, error) { panic("unfinished") }

// InstanceSecretKeys gives the keys of jr2-instance that are minted once and then kept, each with its generator.
func InstanceSecretKeys(in Input) map[string]func() ([]byte, error) { panic("unfinished") }

// GitTokens gives the git tokens that the environment holds, by variable name.
func GitTokens(in Input) map[string]config.Secret { panic("unfinished") }

// HarnessToken derives JR2_INSTANCE_HARNESS_TOKEN from the signing key.
func HarnessToken(signingKey config.Secret) config.Secret { panic("unfinished") }

// CheckHeld returns a *HeldError when secrets are held: this version makes no certificates for the Custodian.
func CheckHeld(in Input) error { panic("unfinished") }

// HeldError names the held secrets that the Custodian cannot swap yet.
type HeldError struct{ Names []string }

func (e *HeldError) Error() string { panic("unfinished") }
