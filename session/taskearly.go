package session

import (
	"slices"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
)

// An early is a message about a task that may be being made.
type early struct {
	id   string
	goOn func()
	late *time.Timer
}

// taskNameWait is how long such a message waits for the result that names the task. Some
// servers may not send that before they have the answer.
const taskNameWait = 5 * time.Second

// awaits keeps f until it is known whether a task is being made, no longer than
// taskNameWait, and reports whether that can be: a server may ask about a task before who
// made it has been told.
func (k *knownTasks) awaits(id string, f func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byID[id] != nil || k.making == 0 || k.going[id] > 0 || len(k.waiting) >= inflight.MaxQueuedMessages {
		return false
	}
	e := &early{id: id, goOn: f}
	e.late = time.AfterFunc(taskNameWait, func() {
		k.goOn(func(other *early) bool { return other == e })
	})
	k.waiting = append(k.waiting, e)
	return true
}

// goOn has those messages go on that need wait no longer, which ready says with k.mu
// held.
func (k *knownTasks) goOn(ready func(*early) bool) {
	for _, e := range k.release(ready) {
		e.goOn()
		k.mu.Lock()
		if k.going[e.id]--; k.going[e.id] == 0 {
			delete(k.going, e.id)
		}
		k.mu.Unlock()
	}
}

// release returns the messages that are to go on.
func (k *knownTasks) release(ready func(*early) bool) (released []*early) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting = slices.DeleteFunc(k.waiting, func(e *early) bool {
		if !ready(e) {
			return false
		}
		if e.late.Stop(); k.going == nil {
			k.going = make(map[string]int)
		}
		k.going[e.id]++
		released = append(released, e)
		return true
	})
	return released
}
