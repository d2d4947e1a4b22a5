package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// discreet leaves the server's words out of an error about a Secret where they may quote what it holds, and names the fields at fault
// as far as the server told them apart from its words.
func discreet(o order, err error) error {
	if !o.isSecret() {
		return err
	}
	class := Classify(err)
	switch class {
	case ClassInvalid, ClassDenied, ClassUnknown, ClassDuplicateKeys:
	default:
		return err
	}
	var fields []string
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			if c.Field != "" {
				fields = append(fields, fmt.Sprintf("%s (%s)", c.Field, c.Type))
			}
		}
	}
	text := "the server refuses it; its words are left out, because they may quote a value"
	if len(fields) > 0 {
		text += "; the fields: " + strings.Join(fields, ", ")
	}
	return &ObjectError{Ref: o.ref, Class: class, Err: errors.New(text)}
}
