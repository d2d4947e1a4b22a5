package jr2

import (
	"context"

	"jr2.dev/jr2/apply"
	"jr2.dev/jr2/internal/holder"
)

// lockName is the Lease in the Instance's namespace that one converge at a time holds.
const lockName = "jr2-converge"

// lock waits for other converges of this Instance. It comes after the checks, because a refusal promises that nothing but the namespace
// was applied. The context that it returns ends when the lock is lost.
func (c *converge) lock(ctx context.Context) (context.Context, func(), error) {
	identity := c.opts.Holder
	if identity == "" {
		identity = holder.Self()
	}
	return apply.Lock(ctx, c.cluster.client, c.cluster.namespace, lockName, identity, apply.LockOptions{
		Gone: holder.Gone,
		Events: func(e apply.Event) {
			if held, ok := e.(apply.LockHeld); ok {
				c.tell(LockWaiting{Holder: held.Holder, Since: held.Since, Fix: apply.BreakLock(held.Namespace, held.Name)})
			}
		},
	})
}
