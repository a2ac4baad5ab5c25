package cells

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/park"
	"github.com/mcpsplice/mcpsplice/server"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/stdio"
	"github.com/mcpsplice/mcpsplice/transport/streamable"

	json "github.com/go-json-experiment/json"
)

// serverVar holds the plan of a server. A process that has it is one.
const serverVar = "MCPSPLICE_FAULTTEST_SERVER"

// A plan says what a server is.
type plan struct {
	Dir     string
	Side    Side
	Address string // of a server over HTTP
	Life    int64  // of calls that wait for a modern client's answer, in nanoseconds
}

func (p *plan) env() map[string]string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // invariant: a plan holds texts and numbers only
	}
	return map[string]string{serverVar: string(text), "GOCOVERDIR": p.Dir}
}

// An Order is the arguments of a call of the tool work.
type Order struct {
	// ID is what the ledgers say, and the begin of the result.
	ID string `json:"id"`
	// Asks is how many questions the tool puts, one after the other.
	Asks int `json:"asks"`
	// Wait is how many milliseconds it takes before each of them and before its
	// result.
	Wait int `json:"wait"`
	// Fate is when the server kills itself: before the first question
	// ([faulttest.Executed]) or after the last answer ([faulttest.Answered]).
	Fate faulttest.Fate `json:"fate"`
}

// A person is what the user is asked for.
type person struct {
	Name string `json:"name"`
}

// RunServer runs a server, if this process is to be one, and returns its exit
// status. Main functions and TestMain call it first of all, with the standard streams
// of the process, and exit with the status. It reports false in a process that is
// none.
func RunServer(stdin, stdout, stderr *os.File) (status int, isServer bool) {
	text, isServer := os.LookupEnv(serverVar)
	if !isServer {
		return 0, false
	}
	var p plan
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.serve(stdin, stdout)
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "the server failed:", err)
		return 1, true
	}
	return 0, true
}

// serve serves until stdin ends.
func (p *plan) serve(stdin, stdout *os.File) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	s := server.New(mcp.Implementation{Name: "asker", Version: "1"}, nil)
	server.AddTool(s, mcp.Tool{Name: "work"}, p.work)
	waiting := park.Options{Life: time.Duration(p.Life)}
	if p.Side.Wire == Stdio {
		return stdio.Serve(ctx, s, &stdio.ServeOptions{
			ServeOptions: transport.ServeOptions{Era: p.Side.Era, Park: waiting}, In: stdin, Out: stdout,
		})
	}
	l, err := p.listen(s, &streamable.ServerOptions{
		HandlerOptions: streamable.HandlerOptions{Era: p.Side.Era, Park: waiting, Retry: retry}, Drain: time.Second,
	})
	if err != nil {
		return err
	}
	address := l.URL()
	if p.Side.Wire == SSE {
		address = l.SSEURL()
	}
	if _, err := fmt.Fprintln(stdout, address); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	return l.Serve(ctx)
}

// listen listens at the address, which may be in use for a moment by a server that
// was killed.
func (p *plan) listen(s mcp.Handler, opts *streamable.ServerOptions) (*streamable.Server, error) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		l, err := streamable.Listen(p.Address, s, opts)
		if err == nil || time.Since(began) > patience {
			return l, err
		}
	}
}

// Ledgers of a server's directory.
func executedIn(dir string) faulttest.Ledger { return faulttest.Ledger(filepath.Join(dir, "executed")) }
func abandonedIn(dir string) faulttest.Ledger {
	return faulttest.Ledger(filepath.Join(dir, "abandoned"))
}

// retry is after how long a legacy client over HTTP comes back.
const retry = 10 * time.Millisecond

// work is the tool.
func (p *plan) work(ctx context.Context, call *server.Call, in Order) (string, error) {
	if err := executedIn(p.Dir).Record(in.ID); err != nil {
		return "", err
	}
	if in.Fate == faulttest.Executed {
		die()
	}
	text, err := obey(ctx, call, &in)
	if ctx.Err() != nil {
		err = abandonedIn(p.Dir).Record(in.ID)
	}
	if in.Fate == faulttest.Answered && err == nil {
		die()
	}
	return text, err
}

// overtaking is how long a cancellation may come after the failure of a question.
const overtaking = 5 * time.Second

func obey(ctx context.Context, call *server.Call, in *Order) (string, error) {
	text := in.ID
	for i := 0; ; i++ {
		select {
		case <-time.After(time.Duration(in.Wait) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if i == in.Asks {
			return text, nil
		}
		who, action, err := server.Elicit[person](ctx, call, in.ID)
		if err != nil {
			// The failure of a question may overtake the cancellation of its call.
			select {
			case <-time.After(overtaking):
			case <-ctx.Done():
			}
			return "", err
		}
		text += " " + string(action) + " " + who.Name
	}
}

// die kills this process. It does not return.
func die() {
	kill(os.Getpid())
	select {}
}

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may be dead already
		_ = p.Release()
	}
}
