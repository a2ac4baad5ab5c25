package faulttest

import (
	"math/rand/v2"
	"time"
)

// A Trouble is what a fault does to a connection.
type Trouble string

// The troubles.
const (
	Delay     Trouble = "delay"      // nothing passes in this direction for a while
	Trickle   Trouble = "trickle"    // from here on single bytes pass, a while apart
	Stall     Trouble = "stall"      // nothing passes in this direction any more
	Freeze    Trouble = "freeze"     // nothing passes in either direction any more
	HalfClose Trouble = "half-close" // this direction ends, the other goes on
	Sever     Trouble = "sever"      // both sides are closed in order
	Reset     Trouble = "reset"      // both sides are reset
)

// A Fault happens to one direction of a connection.
type Fault struct {
	Trouble Trouble
	At      int64 // after how many bytes of this direction
	// Late has it wait until there is a byte more to pass, so that it falls
	// between, say, a request and the first byte of its reply.
	Late bool
	Wait time.Duration // of Delay and Trickle
}

// Faults are what happens to one connection, in the order of their bytes.
type Faults struct {
	Up   []Fault // from the client to the server
	Down []Fault // from the server to the client
}

// A Plan says what happens to the nth connection, from 0. It may be called
// concurrently.
type Plan func(n int) Faults

// Once is the plan of what happens to the first connection; others have no faults.
func Once(f Faults) Plan {
	return func(n int) Faults {
		if n > 0 {
			return Faults{}
		}
		return f
	}
}

// Seeded is a plan of random faults, the same for the same seed. Half of the
// connections have one, at one of their first reach bytes.
func Seeded(seed uint64, reach int64) Plan {
	troubles := []Trouble{Delay, Trickle, Stall, Freeze, HalfClose, Sever, Reset}
	return func(n int) Faults {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		if random.IntN(2) == 0 {
			return Faults{}
		}
		fault := Fault{
			Trouble: troubles[random.IntN(len(troubles))], At: random.Int64N(reach), Late: random.IntN(2) == 0,
			Wait: time.Duration(random.IntN(20)) * time.Millisecond,
		}
		if fault.Trouble == Trickle {
			fault.Wait /= 20 // so that some replies arrive
		}
		if random.IntN(2) == 0 {
			return Faults{Up: []Fault{fault}}
		}
		return Faults{Down: []Fault{fault}}
	}
}
