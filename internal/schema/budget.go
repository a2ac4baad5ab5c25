package schema

import "slices"

// A budget is what is left of the steps that checking a value may take. Counting
// them takes no longer.
type budget struct {
	left int
}

func newBudget() *budget { return &budget{left: MaxValidationSteps} }

// take takes steps from the budget and reports whether there were enough.
func (b *budget) take(steps int) bool {
	b.left -= min(steps, b.left+1)
	return b.left >= 0
}

// A weighed is a decoded JSON value with its size.
type weighed struct {
	size    int // of the whole, in bytes or so
	names   int // of the members' names, in bytes
	members map[string]*weighed
	items   []*weighed
}

// weigh returns what a budget needs to know of a value.
func weigh(v any) *weighed {
	w := &weighed{size: 8}
	switch v := v.(type) {
	case string:
		w.size += len(v)
	case map[string]any:
		w.members = make(map[string]*weighed, len(v))
		for name, member := range v {
			w.members[name] = weigh(member)
			w.names += len(name)
			w.size += len(name) + w.members[name].size
		}
	case []any:
		w.items = make([]*weighed, len(v))
		for i, item := range v {
			w.items[i] = weigh(item)
			w.size += w.items[i].size
		}
	}
	return w
}

// visits say how often the parts of a schema are applied to one value, and, once
// that was asked for, to what it holds. Values that are alike share them.
type visits struct {
	times  map[*part]int
	deeper bool // some part is applied to what the value holds

	name    *visits            // of a member
	members map[string]*visits // those that some part names
	member  *visits            // any other one
	items   []*visits          // those that some part names
	item    *visits            // any other one
}

// newVisits returns the visits of a value to which parts are applied, and those
// that these apply in place.
func newVisits(times map[*part]int) *visits {
	expand(times)
	v := &visits{times: times}
	for p := range times {
		v.deeper = v.deeper || len(p.properties)+len(p.members)+len(p.names)+len(p.prefix)+len(p.items) > 0
	}
	return v
}

// bytesPerStep is how much of a value can be shown in an error, or passed over,
// in one step; matchesPerStep is at how many bytes of a text as many instructions
// of a pattern can be followed.
const (
	bytesPerStep   = 64
	matchesPerStep = 128
)

// spend takes from the budget what it takes to apply parts to a value and to what
// it holds, and reports whether there was enough.
func (b *budget) spend(v *weighed, at *visits) bool {
	for p, times := range at.times {
		cost := 1 + p.weight + v.size/bytesPerStep + p.patterns*v.names/matchesPerStep
		if v.members == nil && v.items == nil {
			cost += p.pattern * v.size / matchesPerStep
		}
		if p.unique && !v.plain() {
			cost += len(v.items) * len(v.items)
		}
		if times > b.left/cost {
			b.left = 0
			return false
		}
		b.left -= times * cost
	}
	if !at.deeper {
		return true
	}
	for name, member := range v.members {
		if !b.spend(&weighed{size: len(name)}, at.ofName(b)) || !b.spend(member, at.ofMember(b, name)) {
			return false
		}
	}
	for i, item := range v.items {
		if !b.spend(item, at.ofItem(b, i)) {
			return false
		}
	}
	return b.left >= 0
}

// plain reports whether the items of an array hold nothing: then comparing them
// takes no more than passing over them.
func (w *weighed) plain() bool {
	return !slices.ContainsFunc(w.items, func(item *weighed) bool { return item.members != nil || item.items != nil })
}

// expand adds the parts that others apply in place.
func expand(at map[*part]int) {
	var order []*part
	seen := make(map[*part]bool, len(at))
	var reach func(p *part)
	reach = func(p *part) {
		if seen[p] {
			return
		}
		seen[p] = true
		order = append(order, p)
		for _, next := range p.here {
			reach(next)
		}
	}
	for p := range at {
		reach(p)
	}
	slices.SortFunc(order, func(a, b *part) int { return a.rank - b.rank })
	for _, p := range order {
		for _, next := range p.here {
			at[next] = bounded(at[next] + at[p])
		}
	}
}

// ofName returns the visits of the name of a member.
func (v *visits) ofName(b *budget) *visits {
	if v.name == nil {
		v.name = v.inside(b, func(p *part) []*part { return p.names })
	}
	return v.name
}

// ofMember returns the visits of a member.
func (v *visits) ofMember(b *budget, name string) *visits {
	if v.members == nil {
		v.members = make(map[string]*visits)
		v.member = v.inside(b, func(p *part) []*part { return p.members })
		for p := range v.times {
			for name := range p.properties {
				v.members[name] = nil
			}
		}
	}
	named, ok := v.members[name]
	if !ok {
		return v.member
	}
	if named == nil {
		named = v.inside(b, func(p *part) []*part {
			if property := p.properties[name]; property != nil {
				return append([]*part{property}, p.members...)
			}
			return p.members
		})
		v.members[name] = named
	}
	return named
}

// ofItem returns the visits of an item.
func (v *visits) ofItem(b *budget, i int) *visits {
	if v.item == nil {
		v.item = v.inside(b, func(p *part) []*part { return p.items })
		longest := 0
		for p := range v.times {
			longest = max(longest, len(p.prefix))
		}
		v.items = make([]*visits, longest)
	}
	if i >= len(v.items) {
		return v.item
	}
	if v.items[i] == nil {
		v.items[i] = v.inside(b, func(p *part) []*part {
			if i < len(p.prefix) {
				return append([]*part{p.prefix[i]}, p.items...)
			}
			return p.items
		})
	}
	return v.items[i]
}

// inside returns the visits of a value inside, to which each part applies others.
// Finding them is work as well.
func (v *visits) inside(b *budget, applies func(p *part) []*part) *visits {
	times := make(map[*part]int)
	if !b.take(len(v.times)) {
		return &visits{times: times}
	}
	for p, n := range v.times {
		for _, to := range applies(p) {
			times[to] = bounded(times[to] + n)
		}
	}
	found := newVisits(times)
	b.take(len(found.times))
	return found
}

// bounded keeps a number of steps, all of which are over the budget, from
// overflowing.
func bounded(n int) int { return min(n, MaxValidationSteps+1) }
