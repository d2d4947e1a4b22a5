package occupants

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A member is one object of the namespace, under every identity that it is served as.
type member struct {
	refs []identity
	meta *metav1.PartialObjectMetadata
	mine bool // the caller says so, or what owns it is the caller's
}

// An identity is one way to name an object.
type identity struct {
	Ref
	resource schema.GroupVersionResource
}

// sorted tells the caller's objects from others.
func sorted(kinds []kind, lists [][]metav1.PartialObjectMetadata, own func(Ref, *metav1.PartialObjectMetadata) bool) *Found {
	members, services := map[types.UID]*member{}, map[string]bool{}
	for i, k := range kinds {
		for j := range lists[i] {
			o := &lists[i][j]
			ref := Ref{Group: k.resource.Group, Version: k.resource.Version, Kind: k.name, Namespace: o.Namespace, Name: o.Name}
			uid := o.UID
			if uid == "" { // a server of its own may give none
				uid = types.UID(fmt.Sprintf("%s %s", k, o.Name))
			}
			if members[uid] == nil {
				members[uid] = &member{meta: o}
			}
			members[uid].refs = append(members[uid].refs, identity{ref, k.resource})
			members[uid].mine = members[uid].mine || own != nil && own(ref, o)
			if ref.Kind == "Service" && ref.Group == "" {
				services[ref.Name] = true
			}
		}
	}
	spread(members)
	found := &Found{}
	for _, m := range members {
		slices.SortFunc(m.refs, func(a, b identity) int { return compareRefs(a.Ref, b.Ref) })
		if !m.mine && slices.ContainsFunc(m.refs, func(id identity) bool { return stands(id.Ref, m.meta, services) }) {
			continue
		}
		into := &found.Others
		if m.mine {
			into = &found.Own
		}
		*into = append(*into, m.occupant(members))
	}
	for _, list := range [][]Occupant{found.Others, found.Own} {
		slices.SortFunc(list, func(a, b Occupant) int {
			return cmp.Or(compareBool(a.Owned, b.Owned), compareRefs(a.Ref, b.Ref), cmp.Compare(a.UID, b.UID))
		})
	}
	return found
}

func (m *member) occupant(members map[types.UID]*member) Occupant {
	o := m.meta
	alive := slices.ContainsFunc(o.OwnerReferences, func(owner metav1.OwnerReference) bool { return members[owner.UID] != nil })
	return Occupant{
		Ref: m.refs[0].Ref, Resource: m.refs[0].resource, UID: o.UID, Managers: managersOf(o), Owned: len(o.OwnerReferences) > 0,
		Orphan: len(o.OwnerReferences) > 0 && !alive, Terminating: o.DeletionTimestamp != nil, Meta: o,
	}
}

// spread makes the caller's what the caller's objects own, through any number of steps: at least one owner of it is there, and each that is there is
// the caller's. A reference counts by UID, and only when that object is there: who copies an object copies its references. Owners that go round in a
// circle are nobody's.
func spread(members map[types.UID]*member) {
	for again := true; again; {
		again = false
		for _, m := range members {
			if !m.mine && m.owned(members) {
				m.mine, again = true, true
			}
		}
	}
}

func (m *member) owned(members map[types.UID]*member) bool {
	owned := false
	for _, ref := range m.meta.OwnerReferences {
		switch owner := members[ref.UID]; {
		case owner == nil:
		case !owner.mine:
			return false
		default:
			owned = true
		}
	}
	return owned
}

// managersOf lists who set fields of an object, other than its status, sorted; those of its status where nobody else is noted.
func managersOf(o *metav1.PartialObjectMetadata) []string {
	var managers, ofStatus []string
	for _, entry := range o.ManagedFields {
		if entry.Subresource == "" {
			managers = append(managers, entry.Manager)
		} else {
			ofStatus = append(ofStatus, entry.Manager)
		}
	}
	if len(managers) == 0 {
		managers = ofStatus
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}

func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
