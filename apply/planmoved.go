package apply

// Moved lists the objects about which a plan that was made now says something else. Both must come from MakePlan.
func (p *Plan) Moved(now *Plan) []Ref { return movedBetween(p, now) }
