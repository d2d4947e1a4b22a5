package render

import (
	"errors"

	"jr2.dev/jr2/config"
)

// Input is all that the objects of an Instance depend on.
type Input struct {
	// Instance is required.
	Instance *config.Instance
	// Namespace defaults to the Instance's name.
	Namespace string
	// Kit names the images of the Kit; KitOf makes one.
	Kit Kit
	// OperatorClass is the priority class of the operator's pod where another Instance chose it already; empty means the class of
	// this Instance's control pods.
	OperatorClass string
	// ImageMap is the JSON text of the image map, as package images writes it. Instance needs it; the same text goes into the
	// ConfigMap jr2-images and into AnnotationImages.
	ImageMap string
	// Replaced is the JSON list of the refs that the map held before; empty for none. It goes into AnnotationReplaced.
	Replaced string
	// SigningKey is the value of JR2_SIGNING_KEY as the cluster keeps it, in its base64 form. Instance and InstanceHarness need
	// it, because tokens and digests derive from it: mint or read jr2-instance first (InstanceSecretKeys).
	SigningKey config.Secret
	// CABundle is the content of the file that harness.caBundle names; nil when the configuration names none.
	CABundle []byte
	// Certificates are those of held secrets. Instance and InstanceHarness need them while any secret is held: StandInCertificates will
	// do where none are made yet.
	Certificates *Certificates
	// Env looks up the variables that git.credentials[].token names; nil means that none is set.
	Env func(name string) (string, bool)
}

// Errors of an incomplete or impossible Input. They are errors of the calling program, not of the one who wrote the configuration.
var (
	ErrNoInstance     = errors.New("render: no Instance given")
	ErrNoSigningKey   = errors.New("render: no signing key given: read or mint jr2-instance first")
	ErrNoImageMap     = errors.New("render: the image map is not a JSON object")
	ErrNoCertificates = errors.New("render: secrets are held and their certificates were not given")
	ErrNoCABundle     = errors.New("render: harness.caBundle is set and its content was not given")
)

func (in Input) namespace() string {
	if in.Namespace != "" || in.Instance == nil {
		return in.Namespace
	}
	return in.Instance.Name
}
