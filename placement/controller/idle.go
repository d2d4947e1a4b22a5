package controller

import (
	"time"

	"jr2.dev/jr2/placement/v1alpha1"
)

// idleAt is when the Sandbox has not been used for its idleTimeout: counted from its creation or its last sign of use, whichever is
// later. It is false when there is no such time: no idleTimeout, one of zero, or a sign of use that can't be read. The last is somebody's
// try to keep the Sandbox, so it is kept.
func idleAt(box *v1alpha1.Sandbox) (time.Time, bool) {
	if box.Spec.IdleTimeout == nil || box.Spec.IdleTimeout.Duration <= 0 {
		return time.Time{}, false
	}
	used := box.CreationTimestamp.Time
	if text, ok := box.Annotations[v1alpha1.AnnotationKeepalive]; ok {
		sign, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, false
		}
		if sign.After(used) {
			used = sign
		}
	}
	return used.Add(box.Spec.IdleTimeout.Duration), true
}
