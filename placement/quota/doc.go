// Package quota reads what a ResourceQuota says when it keeps an object out.
//
// It decides from the words alone whether room that others free may let the request in, and from nothing else: how much room a namespace
// has is placement.Room. It imports no other package of this module, so that whoever meets such a refusal can read it.
package quota
