package provision

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// waits is the wait of one provision, from its first reason to its end.
type waits struct {
	// now is the last reason, nil when nobody waits or has waited; began is when the wait did, zero when none is under way.
	now   *Wait
	began time.Time
}

// see takes a reason to wait: it tells of the first one and of each change. The error says that the caller does not want to wait for it.
func (w *waits) see(p *provision, wait Wait) error {
	waiting := !w.began.IsZero()
	if waiting && w.now.On == wait.On && w.now.Message == wait.Message {
		return nil
	}
	if !waiting {
		w.began = time.Now()
	}
	w.now = &wait
	p.tell(Waiting{About: p.about, Wait: wait, Changed: waiting})
	if p.opts.Refuse != nil && p.opts.Refuse(wait) {
		return p.withWait(p.lost(ErrRefused, ""))
	}
	return nil
}

// end tells how long the wait was, if there is one.
func (w *waits) end(p *provision, placed bool) {
	if w.began.IsZero() {
		return
	}
	p.tell(WaitEnded{About: p.about, Waited: time.Since(w.began), Placed: placed})
	w.began = time.Time{}
}

// withWait adds the last reason to wait to a loss.
func (p *provision) withWait(err error) error {
	if lost := (*LostError)(nil); errors.As(err, &lost) && lost.Wait == nil {
		lost.Wait = p.waits.now
	}
	return err
}

// statusMessage is what the API server says, unchanged.
func statusMessage(err error) string {
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		return known.Status().Message
	}
	return err.Error()
}
