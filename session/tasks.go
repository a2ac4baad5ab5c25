package session

import (
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// Limits of the tasks of 2025-11-25 that are known on one connection: of the server's, and
// as many of those that clients make for it.
const (
	// MaxTasks is how many there may be of all clients. At the limit those whose
	// time to live is over are forgotten, or else the oldest of a client that has
	// nothing in flight. If there are none, no further call can be made as a task.
	MaxTasks = 10_000
	// MaxTasksPerClient is how many there may be of one client. At the limit its
	// oldest is forgotten that no call awaits.
	MaxTasksPerClient = 1000
)

// knownTasks are the tasks of 2025-11-25 that exist on one connection, and whose
// they are: what concerns one reaches its client, and nobody else gets at it.
type knownTasks struct {
	theirs givenTasks // of clients, made for the server

	mu      sync.Mutex
	byID    map[string]*knownTask // of the server; guarded by mu, like what follows
	byCall  map[int64]*knownTask  // by the id of the call that made it
	counts  map[string]int        // of byID, by owner
	last    uint64                // number of a task
	first   string                // client that had to do with tasks
	several bool                  // another one had, too
	making  int                   // calls that may make one
	makers  map[int64]bool        // their ids, as far as they have begun
	waiting []*early              // at most inflight.MaxQueuedMessages
	size    int                   // bytes of waiting, at most inflight.MaxQueuedBytes
	going   map[about]bool        // what messages are about that have waited and go on just now
}

// A knownTask is one task.
type knownTask struct {
	id       string
	owner    string         // ClientKey
	number   uint64         // rises
	call     int64          // that made it, whose id the server has as progress token; 0 for an earlier connection's
	token    jsonrpc.ID     // the client's; absent if it wants no progress
	ours     bool           // made for a client that does not know it, whose call awaits it
	awaiting *inflight.Call // that call of ours, if it is in flight
	over     time.Time      // its time to live; zero for no end
	progress float64        // that the client was told last, if we await the task
	told     time.Time      // when
	says     bool           // the server tells progress itself
}

// alone reports whether one client only has had to do with tasks, which is this one.
// k.mu is held.
func (k *knownTasks) alone(owner string) bool {
	if k.first == "" {
		k.first = owner
	}
	k.several = k.several || k.first != owner
	return !k.several
}

// isKeptTo reports whether a request is that of the only client there is, under the
// anonymous principal. Only then it may name a task that is not known: it may have
// been made on an earlier connection, and there is nobody whose it could be instead.
// k.mu is held.
func (k *knownTasks) isKeptTo(req *mcp.Request) bool {
	return k.alone(req.Meta.ClientKey()) && req.Meta.Principal == (mcp.Principal{})
}

// check returns why a request may not have to do with the task that it names: the
// same for one of somebody else as for one that there is not. Old says that it is none of
// this connection.
func (k *knownTasks) check(req *mcp.Request) (old bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.isKeptTo(req)
	switch t := k.byID[mcp.TaskID(&req.Params)]; {
	case t == nil && kept:
		return true, nil
	case t != nil && t.owner == req.Meta.ClientKey():
		return false, nil
	}
	return false, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Failed to retrieve task: Task not found")
}

// found keeps whose a task of an earlier connection is, which the server has found for a
// client.
func (k *knownTasks) found(t *knownTask) {
	k.mu.Lock()
	if k.byID[t.id] == nil && (len(k.byID)+k.making < MaxTasks || k.forgetOver()) {
		k.add(t)
	}
	k.mu.Unlock()
	k.goOn(nil)
}

// own returns a list of tasks without those that are not the client's. It holds none of
// an earlier connection that the client has not named: there is one list for all who come
// through us, and ids are secrets. A program that is the client itself gets all.
func (k *knownTasks) own(req *mcp.Request, list mcp.Result) mcp.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isKeptTo(req) && req.Meta.Revision == "" {
		return list
	}
	raw, _ := list.Lookup("tasks")
	array := []byte{'['}
	for _, item := range jsonrpc.Elements(raw) {
		v := jsonrpc.Trusted(item)
		if t := k.byID[mcp.TaskID(&v)]; t == nil || t.owner != req.Meta.ClientKey() {
			continue
		}
		if len(array) > 1 {
			array = append(array, ',')
		}
		array = append(array, item...)
	}
	return mcp.Result{Value: jsonrpc.Edited(&list.Value, jsonrpc.Edit{Name: "tasks", Value: append(array, ']')})}
}

// make counts a call more that may make a task. It must be followed by made.
func (k *knownTasks) make(req *mcp.Request) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.alone(req.Meta.ClientKey())
	if n := len(k.byID) + k.making; n >= MaxTasks && !k.forgetOver() {
		return &mcp.CallError{
			Method: req.Method, Kind: mcp.LimitExceeded, Limit: "MaxTasks", Outcome: mcp.NotSent,
			Public: fmt.Sprintf("there are %d tasks on the connection to the server", n),
		}
	}
	k.making++
	return nil
}

// begun says which call it is that may make a task.
func (k *knownTasks) begun(call int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.makers == nil {
		k.makers = make(map[int64]bool)
	}
	k.makers[call] = true
}

// made counts a call less that may make a task, which is t, nil if it made none, and
// has go on what waited for that. The call is 0 if it has not begun.
func (k *knownTasks) made(call int64, t *knownTask) {
	k.mu.Lock()
	k.making--
	delete(k.makers, call)
	if t != nil {
		k.add(t)
	}
	k.mu.Unlock()
	k.goOn(nil)
}

// add keeps a task. k.mu is held.
func (k *knownTasks) add(t *knownTask) {
	k.makeRoom(t.owner)
	k.last++
	t.number = k.last
	if k.byID == nil {
		k.byID, k.byCall = make(map[string]*knownTask), make(map[int64]*knownTask)
		k.counts = make(map[string]int)
	}
	if old := k.byID[t.id]; old != nil {
		k.remove(old)
	}
	k.byID[t.id] = t
	if t.call != 0 {
		k.byCall[t.call] = t
	}
	k.counts[t.owner]++
}

// makeRoom forgets a client's oldest task if it has as many as it may. k.mu is held.
func (k *knownTasks) makeRoom(owner string) {
	if k.counts[owner] < MaxTasksPerClient {
		return
	}
	k.forgetOldest(func(t *knownTask) bool { return t.owner == owner })
}

// forgetOldest forgets the oldest task that may says yes to and that no call awaits, and
// reports whether there was one. k.mu is held.
func (k *knownTasks) forgetOldest(may func(*knownTask) bool) bool {
	var oldest *knownTask
	for _, t := range k.byID {
		if !t.ours && (oldest == nil || t.number < oldest.number) && may(t) {
			oldest = t
		}
	}
	if oldest != nil {
		k.remove(oldest)
	}
	return oldest != nil
}

// forgetAbsent forgets the oldest task of a client that is not present, and reports whether
// there was one.
func (k *knownTasks) forgetAbsent(present map[string]bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.forgetOldest(func(t *knownTask) bool { return !present[t.owner] })
}

// forgetOver forgets tasks whose time to live is over and reports whether there were
// some. k.mu is held.
func (k *knownTasks) forgetOver() bool {
	before, now := len(k.byID), time.Now()
	for _, t := range k.byID {
		if !t.ours && t.isOver(now) {
			k.remove(t)
		}
	}
	return len(k.byID) < before
}

func (t *knownTask) isOver(now time.Time) bool { return !t.over.IsZero() && now.After(t.over) }

func (k *knownTasks) forget(t *knownTask) {
	k.mu.Lock()
	k.remove(t)
	k.mu.Unlock()
	k.goOn(nil)
}

// remove is forget with k.mu held.
func (k *knownTasks) remove(t *knownTask) {
	if k.byID[t.id] != t {
		return
	}
	delete(k.byID, t.id)
	delete(k.byCall, t.call)
	if k.counts[t.owner]--; k.counts[t.owner] == 0 {
		delete(k.counts, t.owner)
	}
}

// attach has what concerns a task of ours go to a call, nil for none at the moment.
func (k *knownTasks) attach(t *knownTask, call *inflight.Call) {
	k.mu.Lock()
	t.ours, t.awaiting = true, call
	k.mu.Unlock()
	k.goOn(nil)
}

// find returns whose a task of the server is, and the call of ours that awaits it,
// if there is one.
func (k *knownTasks) find(id string) (owner string, awaiting *inflight.Call, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byID[id]
	if t == nil {
		return "", nil, false
	}
	return t.owner, t.awaiting, true
}

// isOurs reports whether a task was made for a client that does not know it.
func (k *knownTasks) isOurs(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byID[id]
	return t != nil && t.ours
}

// progressOf returns the id of the task that a call made, and its progress token. That
// is absent if the client is to be told nothing of this progress, which must rise.
func (k *knownTasks) progressOf(call int64, progress float64) (id string, token jsonrpc.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byCall[call]
	if t == nil || t.ours && !t.says && progress <= t.progress {
		return "", jsonrpc.ID{}
	}
	t.says = true
	return t.id, t.token
}

// count returns the progress that a new state of an awaited task stands for, and the
// token of its client: absent if it is to be told of none, as when the server tells
// of progress itself.
func (k *knownTasks) count(id string) (float64, jsonrpc.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.byID[id]
	if t == nil || t.says {
		return 0, jsonrpc.ID{}
	}
	return t.rise(), t.token
}

// rise counts one more. k.mu is held.
func (t *knownTask) rise() float64 {
	t.progress++
	t.told = time.Now()
	return t.progress
}

// beat returns what the client of an awaited task is told of which there is no news, and
// the call by which, nil if there has been some not long ago.
func (k *knownTasks) beat(t *knownTask) (call *inflight.Call, count float64, token jsonrpc.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.says || t.awaiting == nil || time.Since(t.told) < taskHeartbeat {
		return nil, 0, jsonrpc.ID{}
	}
	return t.awaiting, t.rise(), t.token
}

// overAt returns when a time to live that begins now is over; zero for never.
func overAt(life time.Duration) time.Time {
	if life <= 0 {
		return time.Time{}
	}
	return time.Now().Add(life)
}
