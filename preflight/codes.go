package preflight

// Codes lists all stable codes of findings that this module comes to, in the order of the alphabet: what a Choice can name. A caller's own checks
// may have others.
func Codes() []string {
	return []string{
		CodeAntiAffinity, CodeAntiAffinityDrain, CodeAntiAffinityRollout, CodeAPIDown, CodeBuilderUnreachable, CodeBundledImageOff, CodeConfigField, CodeConfigModule, CodeConfigMapMissing,
		CodeDeployKeyMissing, CodeDeployKeyUnnamed, CodeDisruptionNone, CodeDisruptionNever, CodeDisruptionOverlap, CodeEmulation, CodeEscalation,
		CodeFieldConflict, CodeGitToken, CodeHeldAuthority, CodeImageContext, CodeImageCredentials, CodeImageDockerHub, CodeImageInvalid,
		CodeImageMissing, CodeImagePlatform, CodeImageUnpinned, CodeImageVolumes, CodeImmutable, CodeInstanceMissing, CodeInstanceNote, CodeInventory, CodeKernelModule,
		CodeKindUnserved, CodeKitRegistry, CodeKubernetesFloor, CodeLiteralSecret, CodeLockHeld, CodeModelBusy, CodeModelDenied, CodeModelKeyReaches,
		CodeModelNoTools, CodeModelRefused, CodeModelUnknown, CodeModelUnreachable, CodeModelsUnprobed, CodeNamespaceManaged, CodeNamespaceName, CodeNamespaceOccupied, CodeNamespaceOwner,
		CodeNamespaceTerminating, CodeNoBuilder, CodeNoContext, CodeNoPlatform, CodeNoRegistry, CodeNoRoom, CodeNoRoomEver, CodeNoSandboxNode, CodeNodePort, CodeNodeUnchecked,
		CodeNodeVersion, CodeNotLookedAt, CodeNotSchedulableYet, CodeObjectTerminating, CodeOpenPart, CodeOperatorDown, CodeOwnedByOther, CodePlaceholder, CodePlatform,
		CodePodLevelResources, CodePodNeedsMissing, CodePodQuotaFull, CodePodQuotaNever, CodePodRefused, CodePodSecurity, CodePodSecurityLabel,
		CodePodSecurityRunning, CodePriorityClassMissing, CodePrivilegedPods, CodePullSecret, CodeQuotaFull, CodeQuotaNever, CodeRefusedByServer,
		CodeRegistryHost, CodeRegistryOptions, CodeRightMissing, CodeRuntimeClassMissing, CodeRuntimeClassTiny, CodeSandboxRefused, CodeSecretEmpty,
		CodeSecretKeyMissing, CodeSecretMissing, CodeServiceAccount, CodeSigningCredentials, CodeSigningKey, CodeSizeTooLarge, CodeSizeTooSmall, CodeTrustTooLarge, CodeTypes, CodeTypesUnchecked,
		CodeUnauthorized, CodeUnexplained, CodeUnreachable, CodeUnschedulable, CodeWebhookBlocksItself, CodeWebhookUnreachable,
		CodeWebhookUnserved,
	}
}
