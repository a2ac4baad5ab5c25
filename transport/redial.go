package transport

import (
	"fmt"
	"maps"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// Waits after a server could not be reached, during which calls fail at once.
const (
	minRedial = 500 * time.Millisecond
	maxRedial = 30 * time.Second
)

// A redial says when a connection may be attempted again. The zero value says at once.
type redial struct {
	again  time.Time
	wait   time.Duration
	reason error // the last failure
}

// failed makes the next attempt wait, for twice as long as the last one.
func (r *redial) failed(err error) {
	r.wait = min(max(2*r.wait, minRedial), maxRedial)
	r.again, r.reason = time.Now().Add(r.wait), err
}

// tooEarly returns the failure of a call that wants a connection now, nil if one may be
// attempted.
func (r *redial) tooEarly() *mcp.CallError {
	wait := time.Until(r.again)
	if wait <= 0 {
		return nil
	}
	e := unreachable(r.reason)
	e.Err = fmt.Errorf("%w (the next attempt is made in %v)", e.Err, wait.Round(100*time.Millisecond))
	return e
}

// refusals are the clients whose handshake a server has refused, by the keys of their
// connections: what it says to one of them is not about the others.
type refusals map[string]*redial

// maxRefusals is how many are kept; of further ones any other is forgotten, which may
// make an attempt early.
const maxRefusals = 1000

// failed is that of the redial of a client.
func (rs *refusals) failed(key string, err error) {
	if *rs == nil {
		*rs = make(refusals)
	}
	r := (*rs)[key]
	if r == nil {
		rs.makeRoom()
		r = new(redial)
		(*rs)[key] = r
	}
	r.failed(err)
}

// makeRoom forgets those that have not tried again for long, and if need be others.
func (rs *refusals) makeRoom() {
	if len(*rs) < maxRefusals {
		return
	}
	maps.DeleteFunc(*rs, func(_ string, r *redial) bool { return time.Since(r.again) > maxRedial })
	for key := range *rs {
		if len(*rs) < maxRefusals {
			return
		}
		delete(*rs, key)
	}
}

// tooEarly is that of the redial of a client.
func (rs refusals) tooEarly(key string) *mcp.CallError {
	if r := rs[key]; r != nil {
		return r.tooEarly()
	}
	return nil
}
