package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

func TestFirstConnectionFailsFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states history
		began := time.Now()
		p := &puppet{dialed: func(context.Context, int, transport.DialOptions) (*fakeEdge, error) { return nil, errDial }}
		_, err := client.Connect(t.Context(), p, &client.Options{State: states.take})
		if !errors.Is(err, errDial) || p.count() != 1 || time.Since(began) != 0 {
			t.Errorf("%v after %d attempts and %v", err, p.count(), time.Since(began))
		}
		states.expect(t, "connecting", "closed")
	})
}

// history keeps states in order.
type history struct {
	mu  sync.Mutex
	got []string
}

func (h *history) take(s client.State, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, s.String())
}

func (h *history) expect(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.got, want) {
		t.Errorf("the states were %q, want %q", h.got, want)
	}
}

// TestConnectionHealsUnasked_S111_S117_B154: the state follows the connection.
func TestConnectionHealsUnasked_S111_S117_B154(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states history
		p := &puppet{}
		c, err := client.Connect(t.Context(), p, &client.Options{State: states.take})
		if err != nil {
			t.Fatal(err)
		}
		p.last().end(errCrash)
		synctest.Wait()
		if state, err := c.State(); state != client.Waiting || !errors.Is(err, errCrash) {
			t.Errorf("after the crash it is %v, %v", state, err)
		}
		time.Sleep(client.DefaultMinWait)
		if state, err := c.State(); state != client.Connected || err != nil || p.count() != 2 {
			t.Errorf("after %v it is %v, %v, with %d connections", client.DefaultMinWait, state, err, p.count())
		}
		if c.Err() != nil {
			t.Errorf("the client has ended: %v", c.Err())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-c.Done()
		if !errors.Is(c.Err(), mcp.ErrClosed) {
			t.Errorf("S1.18: it ended with %v", c.Err())
		}
		states.expect(t, "connecting", "connected", "connecting", "waiting", "connecting", "connected", "closed")
	})
}

// TestWaitsGrow_R2: each wait is random, up to a bound that doubles.
func TestWaitsGrow_R2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{dialed: failAfter(1)}
		connect(t, p, &client.Options{Healing: client.Healing{Crashes: 1000}})
		p.last().end(errCrash)
		time.Sleep(time.Hour)
		most := client.DefaultMinWait
		several := make(map[time.Duration]bool)
		for i, wait := range p.waits() {
			if wait > most {
				t.Fatalf("wait %d is %v, over %v", i, wait, most)
			}
			several[wait] = true
			most = min(2*most, client.DefaultMaxWait)
		}
		// An hour of waits of 15 s in the mean.
		if n := p.count(); n < 180 || n > 320 || len(several) < n/2 {
			t.Errorf("%d attempts, with %d different waits", n, len(several))
		}
	})
}

// TestDefaultsOfTimeAndHealing_R2: the other tests hold whatever these are.
func TestDefaultsOfTimeAndHealing_R2(t *testing.T) {
	got := []time.Duration{
		client.DefaultTimeout, client.DefaultMaxTimeout,
		client.DefaultMinWait, client.DefaultMaxWait, client.DefaultCrashes, client.DefaultWindow,
	}
	want := []time.Duration{30 * time.Second, 10 * time.Minute, 500 * time.Millisecond, 30 * time.Second, 12, time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// failAfter lets the first n attempts succeed.
func failAfter(n int) func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
	return func(_ context.Context, nth int, _ transport.DialOptions) (*fakeEdge, error) {
		if nth > n {
			return nil, errDial
		}
		return nil, nil
	}
}

// TestCrashLoopIsHeld_R2_B052: calls that want a connection at once cannot make a
// crash loop fast for ever.
func TestCrashLoopIsHeld_R2_B052(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{dialed: failAfter(1)}
		c := connect(t, p, nil)
		p.last().end(errCrash)
		began := time.Now()
		var err error
		for range 100 {
			err = c.Ping(t.Context())
		}
		if n := p.count(); n != client.DefaultCrashes || time.Since(began) > client.DefaultWindow/2 {
			t.Errorf("%d attempts in %v", n, time.Since(began))
		}
		kind, sent := outcome(err)
		if kind != mcp.Unreachable || sent != mcp.NotSent || !strings.Contains(err.Error(), "Healing.Crashes") || !errors.Is(err, errDial) {
			t.Errorf("the error is %v", err)
		}
		if state, err := c.State(); state != client.Held || err == nil {
			t.Errorf("it is %v, %v", state, err)
		}
		time.Sleep(time.Until(began.Add(client.DefaultWindow - time.Second)))
		if n := p.count(); n != client.DefaultCrashes {
			t.Errorf("%d attempts within the window", n)
		}
		p.redial(nil)
		time.Sleep(2*time.Second + client.DefaultMaxWait)
		if state, _ := c.State(); state != client.Connected {
			t.Errorf("after the window it is %v", state)
		}
	})
}

// TestRestartIsNotHeld_R2: a server that is away for some seconds, and called all
// the time.
func TestRestartIsNotHeld_R2(t *testing.T) {
	for _, off := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := &puppet{dialed: failAfter(1)}
			c := connect(t, p, &client.Options{Healing: client.Healing{Off: off}})
			p.last().end(errCrash)
			began := time.Now()
			time.AfterFunc(5*time.Second, func() { p.redial(nil) })
			for c.Ping(t.Context()) != nil && time.Since(began) < client.DefaultWindow {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(began); took > 10*time.Second || p.count() > client.DefaultCrashes {
				t.Errorf("healing off: %t; it took %v and %d attempts", off, took, p.count())
			}
		})
	}
}

// TestConnectionsThatEndAtOnceAreHeld_R2: a child that starts and then crashes.
func TestConnectionsThatEndAtOnceAreHeld_R2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		p.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
			e := newEdge(mcp.Legacy, nil)
			time.AfterFunc(time.Millisecond, func() { e.end(errCrash) })
			return e, nil
		})
		c := connect(t, p, nil)
		for range 1000 {
			time.Sleep(time.Millisecond)
			_ = c.Ping(t.Context())
		}
		if n := p.count(); n > client.DefaultCrashes {
			t.Errorf("%d connections in a second", n)
		}
	})
}

// TestGoodConnectionResetsTheBackoff_R2: one that lasted for the window.
func TestGoodConnectionResetsTheBackoff_R2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{dialed: func(_ context.Context, n int, _ transport.DialOptions) (*fakeEdge, error) {
			if n > 1 && n < 8 {
				return nil, errDial
			}
			return nil, nil
		}}
		connect(t, p, nil)
		p.last().end(errCrash)
		time.Sleep(5 * time.Minute)
		if n := p.count(); n != 8 {
			t.Fatalf("%d attempts", n)
		}
		p.last().end(errCrash)
		time.Sleep(client.DefaultMinWait)
		if n := p.count(); n != 9 {
			t.Errorf("%d attempts half a second after a good connection ended", n)
		}
	})
}

// TestCallWakesAWaitingConnection: at once, and it waits for one attempt only.
func TestCallWakesAWaitingConnection(t *testing.T) {
	for _, tt := range []struct {
		name string
		ok   bool
	}{{"that can be made", true}, {"that cannot", false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &puppet{}
				c := connect(t, p, &client.Options{Healing: client.Healing{MinWait: time.Hour, MaxWait: time.Hour}})
				p.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
					time.Sleep(time.Second)
					if tt.ok {
						return nil, nil
					}
					return nil, errDial
				})
				p.last().end(errCrash)
				synctest.Wait()
				began := time.Now()
				var calls sync.WaitGroup
				for range 10 {
					calls.Go(func() {
						err := c.Ping(t.Context())
						if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, errDial) || time.Since(began) != time.Second {
							t.Errorf("%v after %v", err, time.Since(began))
						}
					})
				}
				calls.Wait()
				time.Sleep(time.Second)
				if n := p.count(); n != 2 {
					t.Errorf("%d attempts for 10 calls at a time", n)
				}
			})
		})
	}
}

// TestHealingOffLeavesItToCalls connects again only for a call.
func TestHealingOffLeavesItToCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		c := connect(t, p, &client.Options{Healing: client.Healing{Off: true}})
		s, err := c.Listen(t.Context(), mcp.Filter{ToolsListChanged: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p.last().end(errCrash)
		time.Sleep(time.Hour)
		if n := p.count(); n != 1 {
			t.Fatalf("%d connections unasked", n)
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		if e, err := s.Next(t.Context()); err != nil || e.Method != client.Resynced {
			t.Errorf("the subscription has %v, %v", e, err)
		}
	})
}

// TestCallWithoutAConnectionEndsInTime_P1: whatever the connection does.
func TestCallWithoutAConnectionEndsInTime_P1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		c := connect(t, p, nil)
		p.redial(func(ctx context.Context, _ int, _ transport.DialOptions) (*fakeEdge, error) {
			<-ctx.Done() // a server that is silent
			return nil, context.Cause(ctx)
		})
		p.last().end(errCrash)
		synctest.Wait()
		began := time.Now()
		err := c.Ping(t.Context())
		kind, sent := outcome(err)
		if kind != mcp.TimedOut || sent != mcp.NotSent || time.Since(began) != client.DefaultTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if kind, sent = outcome(c.Ping(ctx)); kind != mcp.Cancelled || sent != mcp.NotSent {
			t.Errorf("a call that was given up: %v, %v", kind, sent)
		}
	})
}

// TestCloseAtAnyMoment_P1_P7 closes the client in each of its states, with calls
// waiting.
func TestCloseAtAnyMoment_P1_P7(t *testing.T) {
	for name, prepare := range map[string]func(p *puppet){
		"connected": func(*puppet) {},
		"calls waking it": func(p *puppet) {
			p.last().end(errCrash)
		},
		"dialing": func(p *puppet) {
			p.redial(func(ctx context.Context, _ int, _ transport.DialOptions) (*fakeEdge, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
			p.last().end(errCrash)
			pass(time.Second)
		},
		"dialing, in spite of all": func(p *puppet) {
			p.redial(func(ctx context.Context, _ int, _ transport.DialOptions) (*fakeEdge, error) {
				<-ctx.Done()
				return nil, nil
			})
			p.last().end(errCrash)
			pass(time.Second)
		},
		"closing the old connection": func(p *puppet) {
			p.last().slow = 5 * time.Second
			p.last().end(errCrash)
			pass(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &puppet{stays: mcp.MethodCallTool}
				c, err := client.Connect(t.Context(), p, &client.Options{Timeout: -1})
				if err != nil {
					t.Fatal(err)
				}
				prepare(p)
				ended := make(chan error, 5)
				for range cap(ended) {
					go func() { ended <- call(t, c) }()
				}
				synctest.Wait()
				var closing sync.WaitGroup
				for range 3 {
					closing.Go(func() {
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				closing.Wait()
				for range cap(ended) {
					if err := <-ended; !errors.Is(err, mcp.ErrClosed) {
						t.Errorf("a call ended with %v", err)
					}
				}
				if state, err := c.State(); state != client.Closed || !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("it is %v, %v", state, err)
				}
				if err := c.Ping(t.Context()); !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("a call after that: %v", err)
				}
				if _, err := c.Listen(t.Context(), mcp.Filter{}); !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("listening after that: %v", err)
				}
				if p.last().Err() == nil {
					t.Error("a connection is left")
				}
			})
		})
	}
}

// TestStateFunctionMayCallTheClient: nothing waits for it.
func TestStateFunctionMayCallTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *client.Client
		ready := make(chan struct{})
		pings := make(chan error, 10)
		p := &puppet{}
		c = connect(t, p, &client.Options{State: func(s client.State, _ error) {
			<-ready
			if s == client.Waiting {
				pings <- c.Ping(t.Context())
			}
		}})
		close(ready)
		p.last().end(errCrash)
		if err := <-pings; err != nil {
			t.Error(err)
		}
	})
}

// TestErrorOfConnectingIsNoAnswer_B148: a server's error at the handshake is not
// its answer to the call that wanted the connection.
func TestErrorOfConnectingIsNoAnswer_B148(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{}
		c := connect(t, p, &client.Options{Era: mcp.Legacy})
		p.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
			return nil, fmt.Errorf("handshake: %w", peerError(`{"code":-32000,"message":"full"}`))
		})
		p.last().end(errCrash)
		synctest.Wait()
		err := c.Ping(t.Context())
		if kind, sent := outcome(err); kind != mcp.Unreachable || sent != mcp.NotSent || !strings.Contains(err.Error(), "full") {
			t.Errorf("the error is %v", err)
		}
		if mcp.OutcomeOf(err) == mcp.Answered {
			t.Error("it counts as an answer")
		}
	})
}
