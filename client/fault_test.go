package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/faulttest/rounds"
	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
)

// Of the rounds that make soak makes by the thousand, a few. Times are its
// business.
func TestRoundsOfFaults_R1_R3_R8_P1_P2_P7(t *testing.T) {
	const few = 10
	seed := uint64(time.Now().UnixNano())
	for _, kind := range rounds.Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			figures, err := rounds.Run(t.Context(), rounds.Series{Kind: kind, Seed: seed, Rounds: few, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range figures.Problems {
				t.Error(problem)
			}
			if len(figures.Recovery) != few {
				t.Errorf("seed %d: %d rounds", seed, len(figures.Recovery))
			}
		})
	}
}

// soon is how long a busy machine may take for what takes milliseconds.
const soon = 20 * time.Second

// A brittle is a client of a scripted child.
type brittle struct {
	*client.Client

	child *faulttest.Child
	calls int
}

// healsFast are options for tests that do not look at the waits.
func healsFast() *client.Options {
	return &client.Options{Healing: client.Healing{MinWait: time.Millisecond, MaxWait: 10 * time.Millisecond, Crashes: 1000}}
}

// brittleOf connects to a child of the given lives. At the end of the test it
// closes the client, and checks that no process is left.
func brittleOf(t *testing.T, era mcp.Era, opts *client.Options, lives ...faulttest.Script) *brittle {
	t.Helper()
	child := &faulttest.Child{Dir: t.TempDir(), Lives: lives, Era: era}
	t.Cleanup(func() {
		if left := faulttest.Processes(child.Dir); len(left) > 0 {
			t.Errorf("processes %v are left", left)
		}
	})
	target := &client.CommandTarget{
		Command: stdio.Command{Path: faulttest.Executable(), Env: child.Env()},
		Options: stdio.DialOptions{MaxLine: 1 << 20, ExitWait: 50 * time.Millisecond},
	}
	opts.Era = era
	return &brittle{Client: connect(t, target, opts), child: child}
}

// order makes a call, and returns the text of its result.
func (b *brittle) order(o faulttest.Order, timeout time.Duration) (string, error) {
	b.calls++
	if o.ID == "" {
		o.ID = fmt.Sprintf("call %d", b.calls)
	}
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	result, err := b.CallTool(ctx, "work", o, &client.CallOptions{Timeout: timeout})
	if err != nil {
		return "", err
	}
	if text, ok := result.Content[0].(*mcp.Text); ok {
		return text.Text, nil
	}
	return "", errors.New("the result has no text")
}

// works checks that a call succeeds now.
func (b *brittle) works(t *testing.T) {
	t.Helper()
	if got, err := b.order(faulttest.Order{ID: "works"}, soon); err != nil || got != "works" {
		t.Errorf("the next call returned %q, %v", got, err)
	}
}

// audit checks that nothing was executed twice.
func (b *brittle) audit(t *testing.T) {
	t.Helper()
	executed, err := b.child.Ledger().Executed()
	if err != nil {
		t.Fatal(err)
	}
	for id, n := range executed {
		if n > 1 && id != "works" {
			t.Errorf("the call %s was executed %d times", id, n)
		}
	}
}

// eventuallySo waits for what nothing announces.
func eventuallySo(t *testing.T, what string, so func() bool) {
	t.Helper()
	for began := time.Now(); !so(); <-time.After(time.Millisecond) {
		if time.Since(began) > soon {
			t.Fatalf("not within %v: %s", soon, what)
		}
	}
}

// bothEras runs a test for servers of each.
func bothEras(t *testing.T, test func(t *testing.T, era mcp.Era)) {
	t.Helper()
	for _, era := range []mcp.Era{mcp.Legacy, mcp.Modern} {
		t.Run(era.String(), func(t *testing.T) { test(t, era) })
	}
}

// wantEnd checks how a call ended: with a text, or with a kind of failure.
func wantEnd(t *testing.T, got string, err error, text string, kind mcp.FailureKind, known mcp.Outcome) {
	t.Helper()
	switch {
	case kind == "" && (err != nil || got != text):
		t.Errorf("the call returned %q, %v, want %q", got, err, text)
	case kind != "":
		if k, o := outcome(err); err == nil || k != kind || o != known {
			t.Errorf("the call returned %q, %v, want %s, %s", got, err, kind, known)
		}
	}
}

const replyX = `{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[{"type":"text","text":"x"}]}}`

const progressNow = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":1}}` + "\n"

// garbage is what servers write to stdout that is no message of MCP.
var garbage = strings.Join([]string{
	"2026-11-30 INFO ready", "\x1b[31mred\x1b[0m", "\x00\x01\xff\xfe", `{"jsonrpc":"2.0","id":`, `[1,2,3]`, `{"level":"info"}`,
	"Content-Length: 20", "", `"text"`, `{"jsonrpc":"1.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":null,"result":{}}`, "",
}, "\n")

// TestChildrenHaveNoHeaders_P2: a child that refuses a call with the code of wrong headers
// has a meaning of its own for that, and may have executed the call. It is no other
// server than it was.
func TestChildrenHaveNoHeaders_P2(t *testing.T) {
	refusal := `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"out of paper"}}` + "\n"
	b := brittleOf(t, mcp.Legacy, healsFast(),
		faulttest.Script{faulttest.Handshake(), faulttest.Expect(mcp.MethodCallTool), faulttest.Write(refusal), faulttest.Serve()},
		faulttest.Script{faulttest.Serve()})
	if got, err := b.order(faulttest.Order{}, soon); !jsonrpc.FromPeer(err) {
		t.Errorf("the call returned %q, %v", got, err)
	}
	if n := b.child.Starts(); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}

func TestFaultsOfChildren(t *testing.T) {
	script := func(steps ...faulttest.Step) faulttest.Script {
		return append(faulttest.Script{faulttest.Handshake(), faulttest.Expect(mcp.MethodCallTool)}, steps...)
	}
	lost := func(s faulttest.Script) (faulttest.Script, mcp.FailureKind, mcp.Outcome) {
		return s, mcp.ConnectionLost, mcp.MaybeExecuted
	}
	type row struct {
		name   string
		script faulttest.Script // of the first life; later ones serve
		kind   mcp.FailureKind  // of the first call; "" for the result x
		known  mcp.Outcome
		starts int // of the child in all
	}
	var rows []row
	dies := func(name string, s faulttest.Script) {
		s, kind, known := lost(s)
		rows = append(rows, row{name, s, kind, known, 2})
	}
	lives := func(name string, s faulttest.Script) { rows = append(rows, row{name, s, "", "", 1}) }
	write, die := faulttest.Write, faulttest.Die

	dies("R1 it is killed after the call came", script(die()))
	dies("R1 it is killed in the middle of a line", script(write(replyX[:len(replyX)/2]), die()))
	dies("R1 it is killed after a notification", script(write(progressNow), die()))
	dies("R1 it exits in order, without an answer", script(faulttest.Exit(0)))
	dies("R1 it closes stdout and lives", script(faulttest.Close(faulttest.Stdout), faulttest.Hang()))
	dies("R19 it is killed and leaves a grandchild with its stdout", script(faulttest.Grandchild(), die()))
	dies("R19 it exits and leaves a grandchild with its stdout", script(faulttest.IgnoreSignals(), faulttest.Grandchild(), faulttest.Exit(1)))
	lives("R15 garbage around the answer", script(write(garbage+replyX+"\n"+garbage), faulttest.Serve()))
	lives("R15 much garbage before the answer", script(faulttest.Flood(faulttest.Stdout, "garbage\n", 32<<10), write("\n"+replyX+"\n"), faulttest.Serve()))
	dies("R15 nothing but garbage", script(faulttest.Flood(faulttest.Stdout, "garbage\n", 1<<40)))
	lives("R17 a flood of stderr", script(faulttest.Flood(faulttest.Stderr, "warning: all is well\n", 20<<20), write(replyX+"\n"), faulttest.Serve()))
	lives("R17 stderr without line ends", script(faulttest.Flood(faulttest.Stderr, "y", 20<<20), write(replyX+"\n"), faulttest.Serve()))
	lives("R20 the answer twice", script(write(replyX+"\n"+replyX+"\n"), faulttest.Serve()))
	lives("R20 answers to nobody", script(write(`{"jsonrpc":"2.0","id":99999,"result":{}}`+"\n"+
		`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"x"}}`+"\n"+replyX+"\n"), faulttest.Serve()))
	lives("R20 an id that comes back as a text", script(write(strings.Replace(replyX, "$ID", `"$ID"`, 1)+"\n"), faulttest.Serve()))
	rows = append(rows, row{"R16 a line beyond the limit", script(faulttest.Flood(faulttest.Stdout, "y", 20<<20), write("\n"), faulttest.Serve()),
		mcp.LimitExceeded, mcp.MaybeExecuted, 1})

	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			bothEras(t, func(t *testing.T, era mcp.Era) {
				t.Parallel() // they wait for processes
				b := brittleOf(t, era, healsFast(), row.script, faulttest.Script{faulttest.Serve()})
				got, err := b.order(faulttest.Order{}, soon)
				wantEnd(t, got, err, "x", row.kind, row.known)
				b.works(t)
				b.audit(t)
				if n := b.child.Starts(); n != row.starts {
					t.Errorf("the child was started %d times, want %d", n, row.starts)
				}
			})
		})
	}
}

// An answer that comes when nobody waits any more belongs to no later call.
func TestLateAnswers_R20(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		late := strings.Replace(replyX, `"x"`, `"late"`, 1) + "\n"
		b := brittleOf(t, era, healsFast(), faulttest.Script{
			faulttest.Handshake(), faulttest.Expect(mcp.MethodCallTool), faulttest.Expect(mcp.NotificationCancelled), faulttest.Write(late),
			faulttest.Expect(mcp.MethodCallTool), faulttest.Write(replyX + "\n"), faulttest.Serve(),
		})
		got, err := b.order(faulttest.Order{}, 500*time.Millisecond)
		wantEnd(t, got, err, "", mcp.TimedOut, mcp.MaybeExecuted)
		got, err = b.order(faulttest.Order{}, soon)
		wantEnd(t, got, err, "x", "", "")
		b.works(t)
	})
}

func TestServerThatDiesBetweenCalls_R1(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		b := brittleOf(t, era, healsFast(), faulttest.Script{faulttest.Handshake(), faulttest.Die()}, faulttest.Script{faulttest.Serve()})
		eventuallySo(t, "another connection", func() bool { return b.child.Starts() == 2 })
		b.works(t)
	})
}

func TestCrashLoops_R2(t *testing.T) {
	for _, tt := range []struct {
		name string
		life faulttest.Script
	}{
		{"it exits at once", faulttest.Script{faulttest.Exit(1)}},
		{"it exits after the handshake", faulttest.Script{faulttest.Handshake(), faulttest.Exit(1)}},
		{"it is killed in the handshake", faulttest.Script{faulttest.Expect(""), faulttest.Write(`{"jsonrpc":`), faulttest.Die()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			test := func(t *testing.T, era mcp.Era) {
				const crashes = 5
				opts := healsFast()
				opts.Healing.Crashes, opts.Healing.Window = crashes, time.Hour
				b := brittleOf(t, era, opts, faulttest.Script{faulttest.Handshake(), faulttest.Exit(1)}, tt.life)
				eventuallySo(t, "the state held", func() bool {
					state, _ := b.State()
					return state == client.Held
				})
				got, err := b.order(faulttest.Order{}, soon)
				wantEnd(t, got, err, "", mcp.Unreachable, mcp.NotSent)
				// Where the era is found out, one attempt may start it twice.
				if n := b.child.Starts(); n > crashes || n < crashes-1 || era != mcp.NoEra && n != crashes {
					t.Errorf("it was started %d times, want %d", n, crashes)
				}
			}
			bothEras(t, test)
			t.Run("era unknown", func(t *testing.T) { test(t, mcp.NoEra) })
		})
	}
}

// A server whose every call is its last is not started for ever either.
func TestServerThatDiesInEachCall_R2(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		const crashes = 4
		opts := healsFast()
		opts.Healing.Crashes, opts.Healing.Window = crashes, time.Hour
		b := brittleOf(t, era, opts, faulttest.Script{faulttest.Serve()})
		for range crashes {
			got, err := b.order(faulttest.Order{Fate: faulttest.Executed}, soon)
			wantEnd(t, got, err, "", mcp.ConnectionLost, mcp.MaybeExecuted)
		}
		got, err := b.order(faulttest.Order{}, soon)
		wantEnd(t, got, err, "", mcp.Unreachable, mcp.NotSent)
		b.audit(t)
		if n := b.child.Starts(); n != crashes {
			t.Errorf("it was started %d times, want %d", n, crashes)
		}
	})
}

func TestServerThatStopsReading_R18(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		b := brittleOf(t, era, healsFast(), faulttest.Script{faulttest.Handshake(), faulttest.Hang()})
		ends := make(chan error)
		const calls = 300 // of 64 KiB, several times what all queues hold
		for range calls {
			go func() {
				_, err := b.CallTool(context.Background(), "work", map[string]string{"text": strings.Repeat("x", 64<<10)},
					&client.CallOptions{Timeout: 300 * time.Millisecond})
				ends <- err
			}()
		}
		known := make(map[mcp.Outcome]int)
		for range calls {
			select {
			case err := <-ends:
				kind, o := outcome(err)
				if kind != mcp.TimedOut {
					t.Errorf("got %v", err)
				}
				known[o]++
			case <-time.After(soon):
				t.Fatal("a call has not ended")
			}
		}
		if known[mcp.NotSent] == 0 || known[mcp.MaybeExecuted] == 0 || len(known) != 2 {
			t.Errorf("outcomes %v", known)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if _, err := b.CallTool(ctx, "work", nil, nil); err == nil {
			t.Error("a cancelled call succeeded")
		}
	})
}

// What is still queued does not hold Close up, nor does a server that will not end.
func TestClosingWhileAServerDoesNotRead_R18(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		t.Parallel() // it waits
		b := brittleOf(t, era, healsFast(), faulttest.Script{faulttest.IgnoreSignals(), faulttest.Handshake(), faulttest.Hang()})
		ends := make(chan error)
		const calls = 300
		for range calls {
			go func() {
				_, err := b.CallTool(context.Background(), "work", map[string]string{"text": strings.Repeat("x", 64<<10)},
					&client.CallOptions{Timeout: -1, MaxTimeout: -1})
				ends <- err
			}()
		}
		closed := make(chan error)
		go func() { closed <- b.Close() }()
		for range calls {
			select {
			case err := <-ends:
				if kind, _ := outcome(err); kind != mcp.ConnectionLost || !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("a call ended with %v", err)
				}
			case <-time.After(soon):
				t.Fatal("a call has not ended")
			}
		}
		select {
		case err := <-closed:
			// A busy machine may take its time to end what was killed.
			if _, survived := errors.AsType[*process.SurvivorError](err); err != nil && !survived {
				t.Error(err)
			}
		case <-time.After(soon):
			t.Fatal("Close has not returned")
		}
		eventuallySo(t, "no process is left", func() bool { return len(faulttest.Processes(b.child.Dir)) == 0 })
	})
}

// A server that writes a line without end is ended, and started again.
func TestEndlessLine_R16(t *testing.T) {
	b := brittleOf(t, mcp.Modern, healsFast(), faulttest.Script{
		faulttest.Handshake(), faulttest.Expect(mcp.MethodCallTool), faulttest.Flood(faulttest.Stdout, "y", 1<<40),
	}, faulttest.Script{faulttest.Serve()})
	got, err := b.order(faulttest.Order{}, soon)
	wantEnd(t, got, err, "", mcp.LimitExceeded, mcp.MaybeExecuted)
	eventuallySo(t, "another connection", func() bool { return b.child.Starts() == 2 })
	b.works(t)
	b.audit(t)
}

func TestGrandchildrenEndWithTheirServer_R19(t *testing.T) {
	bothEras(t, func(t *testing.T, era mcp.Era) {
		b := brittleOf(t, era, healsFast(), faulttest.Script{faulttest.IgnoreSignals(), faulttest.Grandchild(), faulttest.Serve()})
		b.works(t)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if left := faulttest.Processes(b.child.Dir); len(left) > 0 {
			t.Errorf("processes %v are left", left)
		}
	})
}
