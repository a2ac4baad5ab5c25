package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// A station is a server that is listened to.
type station struct {
	*puppet
	refuse error           // answer to listen calls that come
	lasts  time.Duration   // how long they are let go on; 0 for as long as they like
	silent bool            // they are not acknowledged
	tools  mcp.HandlerFunc // answers tool calls; nil for the usual

	mu     sync.Mutex
	heard  []mcp.Request // guarded by mu, like what follows
	caller []mcp.Caller  // of those that are open, oldest first
}

func newStation(era mcp.Era) *station {
	s := &station{}
	s.puppet = &puppet{dialed: func(context.Context, int, transport.DialOptions) (*fakeEdge, error) {
		return newEdge(era, s.handle), nil
	}}
	return s
}

func (s *station) handle(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
	switch {
	case req.Method == mcp.MethodCallTool && s.tools != nil:
		return s.tools(ctx, req, caller)
	case req.Method != mcp.MethodListen:
		return mcp.Result{}, errUsual
	}
	s.mu.Lock()
	s.heard = append(s.heard, *req)
	refuse, lasts, silent := s.refuse, s.lasts, s.silent
	edge := s.last()
	s.mu.Unlock()
	if refuse != nil {
		return mcp.Result{}, refuse
	}
	filter, err := mcp.ReadFilter(&req.Params)
	if err != nil {
		return mcp.Result{}, err
	}
	s.mu.Lock()
	s.caller = append(s.caller, caller)
	s.mu.Unlock()
	if !silent {
		_ = caller.Notify(ctx, filter.Acknowledge())
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, c := range s.caller {
			if c == caller {
				s.caller = append(s.caller[:i:i], s.caller[i+1:]...)
				break
			}
		}
	}()
	if lasts == 0 {
		return edge.stay(ctx, req)
	}
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	_, _ = edge.stay(ctx, req)
	return mcp.Result{}, lost(req, mcp.Answered, errors.New("the stream ended"))
}

// set changes the station.
func (s *station) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// tell sends a notification to all that listen, and returns how many these are.
func (s *station) tell(method, params string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, caller := range s.caller {
		_ = caller.Notify(context.Background(), &mcp.Notification{Method: method, Params: jsonrpc.Trusted([]byte(params))})
	}
	return len(s.caller)
}

func (s *station) requests() []mcp.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard
}

func listen(t *testing.T, c *client.Client, filter mcp.Filter) *client.Subscription {
	t.Helper()
	s, err := c.Listen(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// come returns what has come to a subscription, without waiting.
func come(s *client.Subscription) []string {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var got []string
	for {
		e, err := s.Next(ended)
		if err != nil {
			return got
		}
		text := e.Method + e.URI()
		if e.Lost > 0 {
			text += fmt.Sprintf(" after %d", e.Lost)
		}
		got = append(got, text)
	}
}

func expect(t *testing.T, s *client.Subscription, want ...string) {
	t.Helper()
	if got := come(s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("there came %q, want %q", got, want)
	}
}

var tools = mcp.Filter{ToolsListChanged: true}

// TestSubscriptionSurvivesTheConnection_S112_B152: and says that something may have
// been missed.
func TestSubscriptionSurvivesTheConnection_S112_B152(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Modern)
		c := connect(t, server, nil)
		s := listen(t, c, mcp.Filter{ToolsListChanged: true, ResourceSubscriptions: []string{"a:b"}})
		if f := s.Filter(); !f.ToolsListChanged || len(f.ResourceSubscriptions) != 1 {
			t.Errorf("the server acknowledged %v", f)
		}
		server.tell(mcp.NotificationResourceUpdated, `{"uri":"a:b"}`)
		expect(t, s, mcp.NotificationResourceUpdated+"a:b")
		for range 3 {
			server.last().end(errCrash)
			time.Sleep(time.Minute)
			server.tell(mcp.NotificationToolsListChanged, `{}`)
			expect(t, s, client.Resynced, mcp.NotificationToolsListChanged)
		}
	})
}

// TestFilterIsTheSubscriptionsOwn: whoever has listened may use the memory of it again.
func TestFilterIsTheSubscriptionsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Modern)
		c := connect(t, server, nil)
		filter := mcp.Filter{ResourceSubscriptions: []string{"a:b"}, TaskIDs: []string{"1"}}
		listen(t, c, filter)
		filter.ResourceSubscriptions[0], filter.TaskIDs[0] = "c:d", "2"
		server.last().end(errCrash)
		time.Sleep(time.Minute)
		requests := server.requests()
		if first, last := requests[0].Params.Raw(), requests[len(requests)-1].Params.Raw(); len(requests) != 2 || string(first) != string(last) {
			t.Errorf("after healing it listens to %s, not %s", last, first)
		}
	})
}

// TestListeningHurriesNothing: an idle subscriber leaves the waits between attempts
// to connect as they are.
func TestListeningHurriesNothing_R2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Legacy)
		c := connect(t, server, &client.Options{Healing: client.Healing{MinWait: time.Hour, MaxWait: time.Hour}})
		s := listen(t, c, tools)
		server.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) { return nil, errDial })
		server.last().end(errCrash)
		time.Sleep(10 * time.Second)
		if n := server.count(); n > 2 {
			t.Errorf("%d attempts in 10 s", n)
		}
		expect(t, s)
	})
}

// TestListenCallThatEndsIsMadeAgain: over HTTP a stream ends while the connection
// goes on.
func TestListenCallThatEndsIsMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		name        string
		lasts       time.Duration
		least, most int // listen calls in an hour
	}{
		{"at once", time.Millisecond, 120, 400},
		{"after a while", time.Minute, 59, 61},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newStation(mcp.Modern)
				server.lasts = tt.lasts
				c := connect(t, server, nil)
				s := listen(t, c, tools)
				time.Sleep(time.Hour)
				if n := len(server.requests()); n < tt.least || n > tt.most {
					t.Errorf("it listened %d times", n)
				}
				if n := server.count(); n != 1 {
					t.Errorf("%d connections were made for that", n)
				}
				expect(t, s, client.Resynced)
				if err := c.Ping(t.Context()); err != nil {
					t.Errorf("a call meanwhile: %v", err)
				}
			})
		})
	}
}

// TestServerThatDoesNotServeIt: calls go on.
func TestServerThatRefusesToBeListenedTo(t *testing.T) {
	for name, refusal := range map[string]error{
		"unknown": peerError(`{"code":-32601,"message":"no"}`),
		"405":     status(http.StatusMethodNotAllowed, 0),
		"500":     status(http.StatusInternalServerError, 0),
		"failure": peerError(`{"code":-32603,"message":"no"}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newStation(mcp.Legacy)
				server.refuse = refusal
				c := connect(t, server, nil)
				if _, err := c.Listen(t.Context(), tools); !errors.Is(err, refusal) {
					t.Errorf("listening: %v", err)
				}
				time.Sleep(time.Minute)
				if err := call(t, c); err != nil {
					t.Errorf("a call: %v", err)
				}
				if n := server.count(); n != 1 {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

// TestServerThatRefusesLater: a refusal ends a subscription, what may pass does not.
func TestServerThatRefusesLater(t *testing.T) {
	for _, tt := range []struct {
		name    string
		refusal error
		ends    bool
	}{
		{"unknown", peerError(`{"code":-32601,"message":"no"}`), true},
		{"404", status(http.StatusNotFound, 0), true},
		{"503", status(http.StatusServiceUnavailable, time.Second), false},
		{"failure", peerError(`{"code":-32603,"message":"no"}`), false},
		{"never reached", &mcp.CallError{Kind: mcp.Unreachable, Outcome: mcp.NotSent, Err: errDial}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newStation(mcp.Legacy)
				c := connect(t, server, nil)
				s := listen(t, c, tools)
				server.set(func() { server.refuse = tt.refusal })
				server.last().end(errCrash)
				time.Sleep(time.Minute)
				server.set(func() { server.refuse = nil })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				e, err := s.Next(ctx)
				if tt.ends && !errors.Is(err, tt.refusal) || !tt.ends && e.Method != client.Resynced {
					t.Errorf("%v, %v", e, err)
				}
			})
		})
	}
}

// TestListeningToASilentServer_P1: an acknowledgement is awaited as a result is.
func TestListeningToASilentServer_P1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Modern)
		server.silent = true
		c := connect(t, server, nil)
		began := time.Now()
		_, err := c.Listen(t.Context(), tools)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != client.DefaultTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Listen(ctx, tools)
		if kind, sent := outcome(err); kind != mcp.TimedOut || sent != mcp.MaybeExecuted {
			t.Errorf("given up: %v", err)
		}
		synctest.Wait()
		if n := server.tell("x", "{}"); n != 0 {
			t.Errorf("%d listen calls are left", n)
		}
	})
}

// TestSilentServerIsListenedToLessOften: an attempt that lasted long because nobody
// answered was no good one.
func TestSilentServerIsListenedToLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Legacy)
		server.silent = true
		connect(t, server, &client.Options{Timeout: client.DefaultMaxWait + time.Second})
		time.Sleep(10 * time.Hour)
		if n := len(server.requests()); n > 1000 { // a minute each would be 600, at once 1161
			t.Errorf("it was listened to %d times", n)
		}
	})
}

// TestListeningWithHandleHasNoLimit: such a call goes on as long as whoever made it
// wants, however little comes.
func TestListeningWithHandleHasNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, newStation(mcp.Modern), nil)
		ctx, cancel := context.WithTimeout(t.Context(), 2*client.DefaultMaxTimeout)
		defer cancel()
		began := time.Now()
		req := &mcp.Request{Method: mcp.MethodListen, Params: tools.Params()}
		_, err := c.Handle(ctx, req, mcp.NoCaller{})
		if took := time.Since(began); took != 2*client.DefaultMaxTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it ended after %v: %v", took, err)
		}
	})
}

// TestListenIsTriedTwice: a connection that has just ended is no reason to fail.
func TestListenIsTriedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Modern)
		c := connect(t, server, nil)
		server.last().end(errCrash)
		if _, err := c.Listen(t.Context(), tools); err != nil {
			t.Error(err)
		}
		server.set(func() { server.refuse = lost(&mcp.Request{}, mcp.MaybeExecuted, errCrash) })
		if _, err := c.Listen(t.Context(), tools); !errors.Is(err, errCrash) || len(server.requests()) != 3 {
			t.Errorf("%v after %d", err, len(server.requests()))
		}
	})
}

// TestListenToAServerThatHasGone_P1: who waits for an acknowledgement waits for no more
// than one attempt to connect again, as a call does.
func TestListenToAServerThatHasGone_P1(t *testing.T) {
	for name, healing := range map[string]client.Healing{"healing": {}, "on demand": {Off: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newStation(mcp.Modern)
				server.silent = true
				c := connect(t, server, &client.Options{Healing: healing})
				ended := make(chan error, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				go func() {
					_, err := c.Listen(ctx, tools)
					ended <- err
				}()
				synctest.Wait()
				server.redial(func(context.Context, int, transport.DialOptions) (*fakeEdge, error) { return nil, errDial })
				server.last().end(errCrash)
				if err := <-ended; !errors.Is(err, errDial) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// TestCloseEndsListening: there is no subscription without an acknowledgement.
func TestCloseEndsListening(t *testing.T) {
	for name, refusal := range map[string]error{
		"while the server is silent":   nil,
		"before it is asked once more": lost(&mcp.Request{}, mcp.MaybeExecuted, errCrash),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newStation(mcp.Modern)
				server.silent, server.refuse = true, refusal
				c := connect(t, server, nil)
				ended := make(chan error, 1)
				go func() {
					s, err := c.Listen(t.Context(), tools)
					if s != nil {
						t.Error("there is a subscription")
					}
					ended <- err
				}()
				synctest.Wait()
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				err := <-ended
				if kind, sent := outcome(err); kind != mcp.ConnectionLost || sent != mcp.MaybeExecuted || !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// TestAcknowledgementThatCannotBeRead_P1 is none, and nobody waits for another one.
func TestAcknowledgementThatCannotBeRead_P1(t *testing.T) {
	for _, params := range []string{`{}`, `{"notifications":[]}`, `{"notifications":{"toolsListChanged":"yes"}}`} {
		t.Run(params, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var listens atomic.Int32
				var server *puppet
				server = &puppet{handle: func(ctx context.Context, req *mcp.Request, caller mcp.Caller) (mcp.Result, error) {
					if req.Method != mcp.MethodListen {
						return mcp.Result{}, errUsual
					}
					listens.Add(1)
					_ = caller.Notify(ctx, &mcp.Notification{
						Method: mcp.NotificationAcknowledged, Params: jsonrpc.Trusted([]byte(params)),
					})
					return server.last().stay(ctx, req)
				}}
				c := connect(t, server, nil)
				time.Sleep(time.Hour)
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				began := time.Now()
				_, err := c.Listen(ctx, tools)
				if kind, sent := outcome(err); kind != mcp.BadReply || sent != mcp.Answered || time.Since(began) > 0 {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if n := listens.Load(); n != 2 { // the other one is the client's own, which goes on
					t.Errorf("%d listen calls", n)
				}
			})
		})
	}
}

// TestSlowSubscriberIsTold: it blocks nobody and loses nothing silently.
func TestSlowSubscriberIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Modern)
		c := connect(t, server, nil)
		s := listen(t, c, tools)
		for range 3 { // which tell no more than one
			server.tell(mcp.NotificationToolsListChanged, `{}`)
		}
		server.tell(mcp.NotificationResourceUpdated, `{"uri":"a:0"}`)
		server.tell(mcp.NotificationToolsListChanged, `{}`)
		expect(t, s, mcp.NotificationToolsListChanged, mcp.NotificationResourceUpdated+"a:0")
		for i := range client.MaxEvents + 10 {
			server.tell(mcp.NotificationResourceUpdated, fmt.Sprintf(`{"uri":"a:%d"}`, i))
		}
		got := come(s)
		if len(got) != client.MaxEvents || got[0] != mcp.NotificationResourceUpdated+"a:10 after 10" {
			t.Errorf("%d events, the first %q", len(got), got[0])
		}
		large := make([]byte, client.MaxEventBytes/4)
		for i := range large {
			large[i] = 'x'
		}
		for range 6 {
			server.tell("vendor/large", `{"x":"`+string(large)+`"}`)
		}
		expect(t, s, "vendor/large after 3", "vendor/large", "vendor/large")
		server.tell(mcp.NotificationToolsListChanged, `{}`)
		server.tell("vendor/large", `{"x":"`+string(append(large, make([]byte, client.MaxEventBytes)...))+`"}`)
		expect(t, s, "vendor/large after 1")
		long := "vendor/" + string(large)
		for range 6 {
			server.tell(long, `{}`)
		}
		expect(t, s, long+" after 3", long, long)
	})
}

// TestSeveralTakeEvents of one subscription.
func TestSeveralTakeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Modern)
		c := connect(t, server, nil)
		s := listen(t, c, tools)
		got := make(chan client.Event, 3)
		for range cap(got) {
			go func() {
				e, err := s.Next(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- e
			}()
		}
		synctest.Wait()
		for i := range cap(got) {
			server.tell(mcp.NotificationResourceUpdated, fmt.Sprintf(`{"uri":"a:%d"}`, i))
		}
		for range cap(got) {
			<-got
		}
		server.tell(mcp.NotificationToolsListChanged, `{}`)
		s.Close()
		if e, err := s.Next(t.Context()); err != nil || e.Method != mcp.NotificationToolsListChanged {
			t.Errorf("what came before: %v, %v", e, err)
		}
		if _, err := s.Next(t.Context()); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

// TestLogMessagesOutsideCalls reach the function for them in spite of everything;
// a new level is told at once, and a lower one after healing.
func TestLogMessagesOutsideCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Legacy)
		server.refuse = status(http.StatusInternalServerError, 0) // at first
		got := make(chan string, 10)
		c := connect(t, server, &client.Options{LogLevel: "info", Log: func(p *mcp.LogParams) { got <- string(p.Data) }})
		time.Sleep(time.Second)
		server.set(func() { server.refuse = nil })
		time.Sleep(time.Minute)
		if n := server.tell(mcp.NotificationMessage, `{"level":"info","data":"one"}`); n != 1 {
			t.Fatalf("%d listen", n)
		}
		if text := <-got; text != `"one"` {
			t.Errorf("got %s", text)
		}
		if err := c.SetLogLevel("debug"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		level := func() mcp.Level {
			all := server.requests()
			return all[len(all)-1].Meta.LogLevel
		}
		if n := server.tell("x", "{}"); n != 1 || level() != "debug" {
			t.Errorf("%d listen, the newest for %q", n, level())
		}
		server.last().end(errCrash)
		time.Sleep(time.Minute)
		if n := server.tell(mcp.NotificationMessage, `{"level":"debug","data":"two"}`); n != 1 || level() != "debug" {
			t.Errorf("after healing %d listen, the newest for %q", n, level())
		}
		if text := <-got; text != `"two"` {
			t.Errorf("got %s", text)
		}
		if err := c.SetLogLevel("loud"); err == nil {
			t.Error("no level at all is taken")
		}
	})
}

// TestLevelsThatNobodyTakes: however often the level changes while the server does not
// let itself be listened to, it is asked as often as before; and once it does, nothing of
// the last subscription that it took is missed meanwhile.
func TestLevelsThatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Legacy)
		got := make(chan string, 10)
		c := connect(t, server, &client.Options{LogLevel: "info", Log: func(p *mcp.LogParams) { got <- string(p.Data) }})
		synctest.Wait()
		server.set(func() { server.refuse = status(http.StatusInternalServerError, 0) })
		for i := range 50 {
			if err := c.SetLogLevel([]mcp.Level{"debug", "error"}[i%2]); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		before := len(server.requests())
		time.Sleep(10 * time.Minute)
		if n := len(server.requests()) - before; n > 100 {
			t.Errorf("it was listened to %d times", n)
		}
		if n := server.tell(mcp.NotificationMessage, `{"level":"error","data":"one"}`); n != 1 || <-got != `"one"` {
			t.Errorf("%d listen calls are left", n)
		}
		server.set(func() { server.refuse = nil })
		time.Sleep(time.Minute)
		all := server.requests()
		if n := server.tell("x", "{}"); n != 1 || all[len(all)-1].Meta.LogLevel != "error" {
			t.Errorf("%d listen, the newest for %q", n, all[len(all)-1].Meta.LogLevel)
		}
	})
}

// TestSlowLogFunctionBlocksNothing: what comes meanwhile waits, within bounds.
func TestSlowLogFunctionBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newStation(mcp.Legacy)
		var c *client.Client
		pings := make(chan error, 1)
		c = connect(t, server, &client.Options{LogLevel: "info", Log: func(*mcp.LogParams) {
			select {
			case pings <- c.Ping(t.Context()): // which the connection's reader could not
			default:
			}
		}})
		synctest.Wait()
		for range 2 * client.MaxEvents {
			server.tell(mcp.NotificationMessage, `{"level":"info","data":1}`)
		}
		if err := <-pings; err != nil {
			t.Error(err)
		}
	})
}
