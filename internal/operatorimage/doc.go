// Package operatorimage makes the operator's image without a container engine: one static binary, appended as a layer to a base image or
// to none, for one platform or several, and pushed to a registry.
//
// It decides what is in the layer, where the binary is and as whom it runs: what package render writes into the operator's Deployment
// relies on both. It does not decide what the operator does.
package operatorimage
