package mcp_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/mcpsplice/mcpsplice/mcp"
)

var errFull = errors.New("full")

// A taker takes so many notifications.
type taker struct {
	mcp.NoCaller
	room  int
	taken []string
}

func (c *taker) Notify(_ context.Context, n *mcp.Notification) error {
	if len(c.taken) == c.room {
		return errFull
	}
	c.taken = append(c.taken, n.Method)
	return nil
}

// A batchTaker takes them in one go.
type batchTaker struct{ taker }

func (c *batchTaker) NotifyAll(_ context.Context, list []*mcp.Notification) error {
	for _, n := range list {
		c.taken = append(c.taken, "all "+n.Method)
	}
	return nil
}

func TestNotifyAll(t *testing.T) {
	list := []*mcp.Notification{{Method: "a"}, {Method: "b"}, {Method: "c"}}
	for room, want := range map[int][]string{3: {"a", "b", "c"}, 1: {"a"}} {
		c := &taker{room: room}
		err := mcp.NotifyAll(t.Context(), c, list)
		if failed := errors.Is(err, errFull); !slices.Equal(c.taken, want) || failed != (room < 3) {
			t.Errorf("of room for %d it took %v, %v", room, c.taken, err)
		}
	}
	c := new(batchTaker)
	if err := mcp.NotifyAll(t.Context(), c, list); err != nil || !slices.Equal(c.taken, []string{"all a", "all b", "all c"}) {
		t.Errorf("in one go it took %v, %v", c.taken, err)
	}
}
