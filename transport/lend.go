package transport

import (
	"github.com/mcpsplice/mcpsplice/mcp"
)

// A Borrower is a [mcp.Caller] that tells when it does not need the result of its
// call any more, so that a later one can have the memory.
type Borrower interface {
	mcp.Caller
	// Lend is called by Handle before it returns a result, or not at all. Free
	// gives the result's memory back: nothing of the result may be used after
	// that. It may be called once, and need not be. A handler in between that keeps
	// results must not have its caller's memory lent: it hands on another Caller.
	Lend(free func())
}

// minLent is how large memory must be to be worth lending.
const minLent = 16 << 10

// Lend lends memory to a caller if that is a [Borrower].
func Lend(caller mcp.Caller, memory []byte, recycle func([]byte)) {
	if len(memory) < minLent {
		return
	}
	if b, ok := caller.(Borrower); ok {
		b.Lend(func() { recycle(memory) })
	}
}
