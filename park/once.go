package park

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
)

// DefaultMaxUsed is how many used states a [Once] keeps if nothing else is said.
const DefaultMaxUsed = 65_536

// A Once is a [Sealer] that opens each state once. It remembers the states that
// were opened until they expire, and is safe for concurrent use.
type Once struct {
	sealer *Sealer
	max    int

	mu   sync.Mutex
	used map[digested]time.Time // expiry by state, guarded by mu
}

// A digested is the digest of a state, which may be long itself.
type digested [sha256.Size]byte

// Once returns a sealer with the secret of s whose states are opened once. It
// remembers at most max of them; 0 stands for [DefaultMaxUsed].
func (s *Sealer) Once(max int) *Once {
	if max <= 0 {
		max = DefaultMaxUsed
	}
	return &Once{sealer: s, max: max, used: make(map[digested]time.Time)}
}

// Seal is that of [Sealer].
func (o *Once) Seal(req *mcp.Request, life time.Duration, payload []byte) (string, error) {
	return o.sealer.Seal(req, life, payload)
}

// Open is that of [Sealer], except that it fails with [ErrUsed] from the second
// time on. While it remembers as many states as it may, none of which has
// expired, it fails with a [*mcp.CallError] that names the limit: no state is
// ever opened twice.
func (o *Once) Open(req *mcp.Request, state string) ([]byte, error) {
	payload, expires, err := o.sealer.open(req, state)
	if err != nil {
		return nil, err
	}
	sum := digested(sha256.Sum256([]byte(state)))
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, used := o.used[sum]; used {
		return nil, ErrUsed
	}
	if len(o.used) >= o.max && !o.forget() {
		return nil, &mcp.CallError{
			Method: req.Method, Kind: mcp.LimitExceeded, Limit: "MaxUsed", Outcome: mcp.NotSent,
			Public: fmt.Sprintf("%d used states are remembered", len(o.used)),
		}
	}
	o.used[sum] = expires
	return payload, nil
}

// forget drops states that have expired and reports whether there were some.
// o.mu is held.
func (o *Once) forget() bool {
	now, before := time.Now(), len(o.used)
	for state, expires := range o.used {
		if !now.Before(expires) {
			delete(o.used, state)
		}
	}
	return len(o.used) < before
}
