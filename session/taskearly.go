package session

import (
	"slices"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/inflight"
)

// An about is what a message is about: a task by its id, or what comes of a call of ours
// by that call's.
type about struct {
	id   string
	call int64
}

// An early is a message about a task that may be being made, or that nobody awaits just
// now.
type early struct {
	about
	size    int // bytes
	goOn    func()
	late    *time.Timer
	overdue bool // it has waited long enough
}

// taskNameWait is how long such a message waits for the result that names the task. Some
// servers may not send that before they have the answer.
const taskNameWait = 5 * time.Second

// maxEarlyNews is how many notifications may wait besides questions, for which the rest
// of inflight.MaxQueuedMessages is kept.
const maxEarlyNews = inflight.MaxQueuedMessages / 2

// awaits keeps a question of size bytes, which f puts, until it is known whether a task is
// being made, no longer than taskNameWait, and reports whether that can be: a server may
// ask about a task before who made it has been told. F does not ask again.
func (k *knownTasks) awaits(a about, size int, f func()) bool {
	return k.keep(&early{about: a, size: size, goOn: f}, inflight.MaxQueuedMessages)
}

// awaitsNews is awaits for a notification: who made the task may not have taken up yet
// what the server has said just before.
func (k *knownTasks) awaitsNews(a about, size int, f func()) bool {
	return k.keep(&early{about: a, size: size, goOn: f}, maxEarlyNews)
}

func (k *knownTasks) keep(e *early, most int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	follows := k.going[e.about] || slices.ContainsFunc(k.waiting, func(w *early) bool { return w.about == e.about })
	if !follows && !k.isUnclear(e.about) || len(k.waiting) >= most ||
		len(k.waiting) > 0 && k.size+e.size > inflight.MaxQueuedBytes {
		return false
	}
	e.late = time.AfterFunc(taskNameWait, func() { k.goOn(e) })
	k.waiting = append(k.waiting, e)
	k.size += e.size
	return true
}

// isUnclear reports whether it will show soon whom a message is for. k.mu is held.
func (k *knownTasks) isUnclear(a about) bool {
	if a.call != 0 {
		return k.makers[a.call]
	}
	if t := k.byID[a.id]; t != nil {
		return t.ours && t.awaiting == nil
	}
	return k.making > 0
}

// goOn has those messages go on that need wait no longer, and one that is late, nil for
// none. What comes about the same meanwhile follows them, and does not overtake them.
func (k *knownTasks) goOn(late *early) {
	released := k.release(late, nil)
	for len(released) > 0 {
		for _, e := range released {
			e.goOn()
		}
		released = k.release(nil, released)
	}
}

// release returns the messages that are to go on, after those that have gone on. It leaves
// to others what is about the same as what they have go on.
func (k *knownTasks) release(late *early, gone []*early) (released []*early) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range gone {
		delete(k.going, e.about)
	}
	for _, e := range k.waiting[:slices.Index(k.waiting, late)+1] {
		e.overdue = e.overdue || e.about == late.about // those before it as well
	}
	k.waiting = slices.DeleteFunc(k.waiting, func(e *early) bool {
		if k.going[e.about] || !e.overdue && k.isUnclear(e.about) {
			return false
		}
		e.late.Stop()
		k.size -= e.size
		released = append(released, e)
		return true
	})
	if k.going == nil {
		k.going = make(map[about]bool)
	}
	for _, e := range released {
		k.going[e.about] = true
	}
	return released
}
