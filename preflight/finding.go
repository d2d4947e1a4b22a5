package preflight

import "strings"

// Severity orders findings.
type Severity string

const (
	// Refuse stops a converge before the next write.
	Refuse Severity = "refuse"
	// Warn is something that will hurt, now or later, and does not stop a converge.
	Warn Severity = "warn"
	// Note is worth knowing, such as that a check could not look.
	Note Severity = "note"
)

// Stable codes of the findings of this package.
const (
	CodeKubernetesFloor      = "kubernetes-floor"
	CodeNamespaceManaged     = "namespace-managed"
	CodeNamespaceName        = "namespace-name"
	CodeNamespaceOccupied    = "namespace-occupied"
	CodeNamespaceOwner       = "namespace-owner"
	CodeNamespaceTerminating = "namespace-terminating"
	CodePodLevelResources    = "pod-level-resources"
	CodeSecretMissing        = "secret-missing"
	CodeSecretKeyMissing     = "secret-key-missing"
	CodeOpenPart             = "open-part"
	CodeDeployKeyUnnamed     = "deploy-key-unnamed"
	CodeDeployKeyMissing     = "deploy-key-missing"
	CodeHeldAuthority        = "held-authority-made-anew"
	CodeTrustTooLarge        = "trust-too-large"
	CodeModelKeyReaches      = "model-key-reaches-harness"
	CodeModelsUnprobed       = "models-unprobed"
	CodeRegistryHost         = "registry-host"
	CodeInstanceNote         = "instance-note"
	CodeSigningKey           = "signing-key-minted-anew"
	CodeLiteralSecret        = "literal-secret"
	CodeGitToken             = "git-token-unset"
	CodeOperatorDown         = "operator-unavailable"
	CodeNoSandboxNode        = "no-sandbox-node"
	CodeSizeTooLarge         = "size-too-large"
	CodeBundledImageOff      = "bundled-image-off"
	// CodeTypesUnchecked is a Note: the folder is not trusted, so its compiler did not run.
	CodeTypesUnchecked = "types-unchecked"
)

// Stable codes of the findings about a set of objects.
const (
	CodePlaceholder         = "placeholder"
	CodeImageUnpinned       = "image-unpinned"
	CodeImageInvalid        = "image-invalid"
	CodeImageMissing        = "image-missing"
	CodeImageDockerHub      = "image-docker-hub"
	CodeImagePlatform       = "image-platform"
	CodeImageCredentials    = "image-credentials"
	CodePullSecret          = "pull-secret"
	CodeUnschedulable       = "unschedulable"
	CodeNotSchedulableYet   = "not-schedulable-yet"
	CodeRuntimeClassMissing = "runtime-class-missing"
	CodeRuntimeClassTiny    = "runtime-class-overhead"
	CodePodSecurity         = "pod-security"
	CodePodSecurityLabel    = "pod-security-label"
	CodePodSecurityRunning  = "pod-security-running"
	CodePodRefused          = "pod-refused"
	CodePodQuotaNever       = "pod-quota-never"
	CodePodQuotaFull        = "pod-quota-full"
	CodePodNeedsMissing     = "pod-needs-missing"
	CodeAntiAffinity        = "anti-affinity"
	CodeAntiAffinityDrain   = "anti-affinity-drain"
	CodeAntiAffinityRollout = "anti-affinity-rollout"
	CodeDisruptionNever     = "disruption-never"
	CodeDisruptionNone      = "disruption-matches-nothing"
	CodeDisruptionOverlap   = "disruption-overlap"
	// CodeNotLookedAt is a Note: a check of the set could not look.
	CodeNotLookedAt = "not-looked-at"
)

// A Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"`
	// Object names what the finding is about: "Namespace team-a", "Secret team-a/model-key", "Workflow review".
	Object string `json:"object"`
	// Message is the whole sentence for a person, with the fix in it.
	Message string `json:"message"`
	// Fix is what to type or to change, alone.
	Fix string `json:"fix,omitempty"`
}

// A Refusal is the error of a converge that a finding stopped. Its text is the findings' messages, one a line.
type Refusal struct {
	Findings []Finding
}

func (r *Refusal) Error() string { return strings.Join(r.Messages(), "\n") }

// Messages are the sentences of the findings, in their order.
func (r *Refusal) Messages() []string {
	messages := make([]string, len(r.Findings))
	for i, finding := range r.Findings {
		messages[i] = finding.Message
	}
	return messages
}

// Refused returns the refusing findings as an error, or nil when nothing refuses.
func Refused(findings []Finding) error {
	var refusing []Finding
	for _, finding := range findings {
		if finding.Severity == Refuse {
			refusing = append(refusing, finding)
		}
	}
	if len(refusing) == 0 {
		return nil
	}
	return &Refusal{Findings: refusing}
}
