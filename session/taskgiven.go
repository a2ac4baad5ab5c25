package session

import (
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// givenTasks are the tasks that clients have made for the server on one connection, each
// out of a question. There are [MaxTasks] at most, and [MaxTasksPerClient] of one client.
type givenTasks struct {
	mu     sync.Mutex
	byID   map[string]*givenTask // guarded by mu, like what follows
	counts map[string]int        // of byID, by owner
	last   uint64                // number of a task
}

// A givenTask is one task.
type givenTask struct {
	id     string
	owner  string // ClientKey; "" if several clients have chosen the id
	number uint64 // rises
	over   time.Time
	ended  bool // it works no more, but its result may be wanted
	served bool // its result is there
}

// How well a task can be forgotten, the best first.
const (
	timeIsOver  = iota
	wasServed   // the server has its result
	ownerIsGone // and cannot be asked
	hasEnded    // and the server may not have asked for the result
	goesOn
)

// standing returns how well a task can be forgotten. Present are the clients that are
// there; nil for not known.
func (t *givenTask) standing(now time.Time, present map[string]bool) int {
	switch {
	case !t.over.IsZero() && now.After(t.over):
		return timeIsOver
	case t.served:
		return wasServed
	case present != nil && !present[t.owner]:
		return ownerIsGone
	case t.ended:
		return hasEnded
	}
	return goesOn
}

// isFull reports whether a further task needs the place of another one.
func (g *givenTasks) isFull() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.byID) >= MaxTasks
}

// keep keeps which client has made a task. Of two that have chosen the same id neither
// has it. At the limit of one client its task that can best be forgotten makes room. At
// that of all one that does not go on does, of a client that is present or not; if there
// is none, the new one is not known, and the only client there is will be asked.
func (g *givenTasks) keep(task mcp.Task, owner string, present map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.byID[task.ID]; old != nil {
		g.remove(old)
		if old.owner != owner {
			old.owner = ""
			g.add(old)
			return
		}
	}
	if g.counts[owner] >= MaxTasksPerClient {
		g.forget(goesOn, present, func(t *givenTask) bool { return t.owner == owner })
	}
	if len(g.byID) >= MaxTasks && !g.forget(hasEnded, present, func(*givenTask) bool { return true }) {
		return
	}
	g.last++
	g.add(&givenTask{
		id: task.ID, owner: owner, number: g.last, over: overAt(task.Life), ended: task.Over(),
	})
}

// add has a task take its place. g.mu is held.
func (g *givenTasks) add(t *givenTask) {
	if g.byID == nil {
		g.byID, g.counts = make(map[string]*givenTask), make(map[string]int)
	}
	g.byID[t.id] = t
	g.counts[t.owner]++
}

// remove has a task leave its place. g.mu is held.
func (g *givenTasks) remove(t *givenTask) {
	delete(g.byID, t.id)
	if g.counts[t.owner]--; g.counts[t.owner] == 0 {
		delete(g.counts, t.owner)
	}
}

// forget forgets the task that can best be forgotten of those that may says yes to, of
// several the oldest, and reports whether there was one that can be at least as well as
// least. g.mu is held.
func (g *givenTasks) forget(least int, present map[string]bool, may func(*givenTask) bool) bool {
	var best *givenTask
	now := time.Now()
	for _, t := range g.byID {
		standing := t.standing(now, present)
		if !may(t) || standing > least || standing == least && best != nil && t.number > best.number {
			continue
		}
		best, least = t, standing
	}
	if best != nil {
		g.remove(best)
	}
	return best != nil
}

// hears notes what a client says of a task of its own: its state, or, served, its result.
func (g *givenTasks) hears(id, owner string, task mcp.Task, served bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.byID[id]
	if t == nil || t.owner != owner {
		return
	}
	t.served = t.served || served
	t.ended = t.ended || task.Over()
}

// owner returns which client has made a task, "" if that cannot be told, and whether it
// is known.
func (g *givenTasks) owner(id string) (owner string, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.byID[id]
	if t == nil {
		return "", false
	}
	return t.owner, true
}

// mayTell reports whether a client may tell the server of the task that a notification
// names: not if another one has made it.
func (g *givenTasks) mayTell(n *mcp.Request) bool {
	task, _ := mcp.ReadTask(&n.Params)
	id := mcp.TaskID(&n.Params)
	owner, known := g.owner(id)
	if known && owner != n.Meta.ClientKey() {
		return false
	}
	g.hears(id, n.Meta.ClientKey(), task, false)
	return true
}

// answered notes what a client's answer to a request for a task says of the task.
func (g *givenTasks) answered(req *mcp.Request, result *mcp.Result, owner string) {
	task, _ := mcp.ReadTask(&result.Value) // a task's result says nothing of it
	served := req.Method == mcp.MethodTaskResult
	if served {
		task = mcp.Task{}
	}
	g.hears(mcp.TaskID(&req.Params), owner, task, served)
}
