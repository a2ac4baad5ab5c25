package client_test

import (
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// Nobody accepts, and the queue of those who wait for that is full.
func TestConnectingToABlackHole_R7(t *testing.T) {
	hole, err := faulttest.NewBlackHole()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hole.Close() })
	bothEras(t, func(t *testing.T, era mcp.Era) {
		target := &client.URLTarget{
			URL:     "http://" + hole.Addr,
			Options: streamable.DialOptions{ConnectTimeout: 100 * time.Millisecond, HandshakeTimeout: 300 * time.Millisecond},
		}
		c, err := client.Connect(t.Context(), target, &client.Options{Era: era})
		if err == nil {
			// A modern server is believed to be there until it is called.
			err = call(t, c)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if kind, known := outcome(err); kind != mcp.Unreachable || known != mcp.NotSent {
			t.Errorf("got %v", err)
		}
		target.URL, target.Options = newCounting(t, era, nil).URL, streamable.DialOptions{}
		if err := call(t, connect(t, target, &client.Options{Era: era})); err != nil {
			t.Errorf("another address: %v", err)
		}
	})
}
