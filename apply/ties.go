package apply

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	accountName = corev1.ServiceAccountNameKey
	accountUID  = corev1.ServiceAccountUIDKey

	bootstrapToken = "bootstrap.kubernetes.io/token"
	// bootstrapHome is the only namespace of which the cluster takes bootstrap tokens for such, and away.
	bootstrapHome = metav1.NamespaceSystem
)

// isToken says that the object is a Secret into which the cluster puts the token of a ServiceAccount, and which it
// deletes with that.
func (o order) isToken() bool {
	return o.isSecret() && text(o.body.Object["type"]) == string(corev1.SecretTypeServiceAccountToken)
}

// account is the ServiceAccount of a token Secret.
func (o order) account() Ref {
	name := o.body.GetAnnotations()[accountName]
	return Ref{Version: "v1", Kind: "ServiceAccount", Namespace: o.ref.Namespace, Name: name}
}

// isBootstrapToken says that the object is a token with which nodes join.
func (o order) isBootstrapToken() bool {
	return o.isSecret() && o.ref.Namespace == bootstrapHome && text(o.body.Object["type"]) == bootstrapToken
}

// isTied says that a controller of the cluster takes the object away by what it holds: its owners, its account, its
// end.
func (o order) isTied() bool {
	return o.isToken() || o.isBootstrapToken() || len(o.body.GetOwnerReferences()) > 0
}

// A tieReader tells whether the cluster lets an object live. It reads the metadata of each owner once, and is for one
// goroutine.
type tieReader struct {
	r    *run
	seen map[Ref]tiedTo
	// made says that an object which the set makes and which is not there yet will be: so a plan looks at it.
	made func(Ref) bool
}

// tiedTo is what a tieReader read of an owner.
type tiedTo struct {
	known bool // somebody could look
	now   *metav1.PartialObjectMetadata
}

func (r *run) newTies(made func(Ref) bool) *tieReader {
	return &tieReader{r: r, seen: map[Ref]tiedTo{}, made: made}
}

// read looks at an owner. One of a kind that nobody serves is not known to be gone: the garbage collector can't tell
// either.
func (t *tieReader) read(ctx context.Context, ref Ref) tiedTo {
	if got, ok := t.seen[ref]; ok {
		return got
	}
	var got tiedTo
	if at, err := t.r.cluster.at(ctx, ref); err == nil {
		now, err := t.r.getMeta(ctx, at, ref)
		got = tiedTo{known: err == nil, now: now}
	}
	t.seen[ref] = got
	return got
}

// why says why the cluster takes the object away; "" when nothing is known that would. now is the object's metadata,
// nil when it is not there.
func (t *tieReader) why(ctx context.Context, o order, now *metav1.PartialObjectMetadata) string {
	owners, notes := o.body.GetOwnerReferences(), o.body.GetAnnotations()
	if now != nil && len(owners) > 0 {
		owners = now.OwnerReferences
	}
	if now != nil && o.isToken() {
		notes = now.Annotations
	}
	if why := t.collected(ctx, o.ref, owners); why != "" {
		return why
	}
	if o.isToken() {
		return t.disowned(ctx, o.ref, notes)
	}
	return expired(o)
}

// collected says which owners are gone, when all are: then the garbage collector takes the object. This is its own
// rule.
func (t *tieReader) collected(ctx context.Context, ref Ref, owners []metav1.OwnerReference) string {
	var gone []string
	for _, owner := range owners {
		gv, err := schema.ParseGroupVersion(owner.APIVersion)
		if err != nil {
			return ""
		}
		at := Ref{Group: gv.Group, Version: gv.Version, Kind: owner.Kind, Namespace: ref.Namespace, Name: owner.Name}
		if m, err := t.r.cluster.mapping(ctx, at); err == nil && m.Scope.Name() == meta.RESTScopeNameRoot {
			at.Namespace = ""
		}
		got := t.read(ctx, at)
		what := fmt.Sprintf("%s with the uid %s", at, owner.UID)
		switch {
		case !got.known:
			return ""
		case got.now == nil:
			gone = append(gone, what+" is not there")
		case got.now.UID != owner.UID:
			gone = append(gone, fmt.Sprintf("%s is not there, the one of its name has %s", what, got.now.UID))
		case got.now.DeletionTimestamp != nil && slices.Contains(got.now.Finalizers, metav1.FinalizerDeleteDependents):
			gone = append(gone, what+" is being deleted with what it owns")
		default:
			return ""
		}
	}
	if len(gone) == 0 {
		return ""
	}
	return "its owner " + strings.Join(gone, ", and its owner ") +
		", so the garbage collector takes it; leave metadata.ownerReferences out, which hold only where the manifest was exported"
}

// disowned says why the token controller deletes a token Secret with those annotations.
func (t *tieReader) disowned(ctx context.Context, ref Ref, notes map[string]string) string {
	account := Ref{Version: "v1", Kind: "ServiceAccount", Namespace: ref.Namespace, Name: notes[accountName]}
	got, uid := t.read(ctx, account), types.UID(notes[accountUID])
	const (
		deletes  = ", and the token controller deletes a token Secret without its account"
		leaveOut = deletes + "; leave that annotation out, which the cluster writes"
	)
	switch {
	case account.Name == "" || !got.known:
		return ""
	case got.now == nil && t.made(account) && uid == "":
		return ""
	case got.now == nil && uid == "":
		return fmt.Sprintf("its %s is not there%s", account, deletes)
	case got.now == nil:
		return fmt.Sprintf("its %s with the uid %s (%s) is not there%s", account, uid, accountUID, leaveOut)
	case uid != "" && got.now.UID != uid:
		return fmt.Sprintf("its annotation %s says %s, and %s has the uid %s%s", accountUID, uid, account, got.now.UID, leaveOut)
	}
	return ""
}

// expired says that a bootstrap token is over.
func expired(o order) string {
	if !o.isBootstrapToken() {
		return ""
	}
	raw, _ := base64.StdEncoding.DecodeString(text(dig(o.body.Object, "data", "expiration")))
	end, err := time.Parse(time.RFC3339, string(raw))
	if err != nil || time.Now().Before(end) {
		return ""
	}
	at := end.UTC().Format(time.RFC3339)
	return fmt.Sprintf("the bootstrap token expired at %s, and the token cleaner deletes one that did", at)
}
