package preflight

// Stable codes of the findings about the builder of images that are to be built.
const (
	CodeNoBuilder          = "no-builder"          // none answers at any place where one is looked for
	CodeBuilderUnreachable = "builder-unreachable" // the one that is named does not answer
	CodeEmulation          = "emulation-missing"   // it can't build for a platform of the set
)
