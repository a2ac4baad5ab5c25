package transport_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A borrower gives the memory of its result back when it is told to.
type borrower struct {
	mcp.NoCaller

	free func()
}

// Lend implements [transport.Borrower].
func (b *borrower) Lend(free func()) { b.free = free }

// TestLentMemory has some callers give memory back and others keep it: nobody's
// result changes before that.
func TestLentMemory(t *testing.T) {
	var mu sync.Mutex
	given := make(map[*byte]int)
	recycle := func(memory []byte) {
		mu.Lock()
		defer mu.Unlock()
		given[&memory[0]]++
	}
	large, small := bytes.Repeat([]byte("x"), 32<<10), []byte("x")
	b := &borrower{}
	if transport.Lend(b, small, recycle); b.free != nil {
		t.Error("a few bytes are lent")
	}
	transport.Lend(mcp.NoCaller{}, large, recycle)
	if transport.Lend(b, large, recycle); b.free == nil {
		t.Fatal("nothing is lent")
	}
	if len(given) > 0 {
		t.Error("memory was given back before it was free")
	}
	if b.free(); given[&large[0]] != 1 {
		t.Errorf("given back: %v", given)
	}
}
