package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A State says whether a backend can be used.
type State string

// The states.
const (
	Untried  State = "untried"  // nobody has asked for it yet
	Good     State = "good"     // its last answer came in time
	Degraded State = "degraded" // it failed or was late; what is known of it from before is shown
)

// A Status is what a gateway knows of a backend.
type Status struct {
	Backend string
	State   State
	Reason  string    // why it is degraded; may hold what clients are not to be told
	Since   time.Time // of the state
	Calls   int       // in flight, but for those whose user is being asked
	Refused int64     // calls over MaxCalls or MaxShare so far
}

// String returns the status as one line, without what terminals would act upon.
func (s Status) String() string {
	line := fmt.Sprintf("%s: %s since %s, %d calls in flight, %d refused",
		s.Backend, s.State, s.Since.UTC().Format(time.RFC3339), s.Calls, s.Refused)
	if s.Reason != "" {
		line += ": " + strings.Join(strings.Fields(s.Reason), " ")
	}
	return strings.Map(printable, line)
}

func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

// Status returns the status of each backend, in the order of their names.
func (g *Gateway) Status() []Status {
	backends := g.all()
	all := make([]Status, len(backends))
	for i, b := range backends {
		b.mu.Lock()
		all[i] = Status{
			Backend: b.name, State: b.state, Reason: b.reason, Since: b.since,
			Calls: b.calls.inUse(), Refused: b.refused.Load(),
		}
		b.mu.Unlock()
	}
	return all
}

// A Conflict is a feature that is not shown because another one has its name, or its
// URI. That of the backend whose name comes first is shown; within one backend, the one
// that is listed first.
type Conflict struct {
	List   string // the method by which it is listed
	Name   string // the name or URI, as shown, or how it begins
	Shown  string // backend
	Hidden string // backend
}

// Bounds of the conflicts that are remembered: how many, and how much of a name, in bytes.
const (
	maxConflicts    = 1000
	maxConflictName = 256
)

// Conflicts returns the conflicts that lists have shown so far, in an order that does
// not change. Those of backends that were removed are left out.
func (g *Gateway) Conflicts() []Conflict {
	g.mu.RLock()
	defer g.mu.RUnlock()
	all := make([]Conflict, 0, len(g.conflicts))
	for c := range g.conflicts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Conflict) int {
		return strings.Compare(a.List+"\x00"+a.Name+"\x00"+a.Hidden, b.List+"\x00"+b.Name+"\x00"+b.Hidden)
	})
	return all
}

// noteConflict takes up a conflict, and logs it when it is new.
func (g *Gateway) noteConflict(c Conflict) {
	if len(c.Name) > maxConflictName {
		c.Name = strings.ToValidUTF8(strings.Clone(c.Name[:maxConflictName]), "")
	}
	g.mu.RLock()
	_, known := g.conflicts[c]
	full := len(g.conflicts) >= maxConflicts
	g.mu.RUnlock()
	if known || full || !g.addConflict(c) {
		return
	}
	g.opts.Logger.Warn("a feature is not shown, since another one has its name",
		"method", c.List, "name", c.Name, "shown", c.Shown, "backend", c.Hidden)
}

// addConflict reports whether a conflict was added: not if one of its backends has been
// removed meanwhile.
func (g *Gateway) addConflict(c Conflict) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range [...]string{c.Shown, c.Hidden} {
		if _, there := slices.BinarySearchFunc(g.backends, name, byName); !there {
			return false
		}
	}
	g.conflicts[c] = struct{}{}
	return true
}
