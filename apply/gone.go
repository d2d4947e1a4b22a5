package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// waitGone watches until the object with that UID is gone, or another one has taken its name. An object that stays beyond the limit
// is an *ObjectError of ClassBeingDeleted that names what holds it.
func waitGone(ctx context.Context, at metadata.ResourceInterface, ref Ref, uid types.UID, limit time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var holders []string
	err := watchUntil(bounded, metaSource(at, ref.Name), func(objs []runtime.Object) (look, error) {
		for _, o := range objs {
			m, err := meta.Accessor(o)
			if err != nil {
				return look{}, err
			}
			if m.GetUID() == uid {
				holders = m.GetFinalizers()
				return look{}, nil
			}
		}
		return look{done: true}, nil
	})
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	text := fmt.Sprintf("it is still being deleted after %s", limit)
	if len(holders) > 0 {
		text += ", held by " + strings.Join(holders, ", ")
	}
	return &ObjectError{Ref: ref, Class: ClassBeingDeleted, Err: errors.New(text)}
}
