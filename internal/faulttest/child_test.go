package faulttest_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
	"github.com/mcpsplice/mcpsplice/internal/process"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// patience is how long a busy machine may take for what takes milliseconds.
const patience = 20 * time.Second

// start starts a child, and ends it with the test.
func start(t *testing.T, c *faulttest.Child) *process.Process {
	t.Helper()
	p, err := process.Start(t.Context(), process.Command{
		Path: faulttest.Executable(), Env: c.Env(),
		Waits: process.Waits{Exit: 100 * time.Millisecond, Term: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := p.Close(); err != nil {
			t.Errorf("ending the child: %v", err)
		}
	})
	return p
}

func newChild(t *testing.T, lives ...faulttest.Script) *faulttest.Child {
	t.Helper()
	return &faulttest.Child{Dir: t.TempDir(), Lives: lives}
}

// play starts a child, writes to it, and returns what it wrote until it closed
// stdout or ended.
func play(t *testing.T, c *faulttest.Child, input string) (p *process.Process, output string) {
	t.Helper()
	p = start(t, c)
	if _, err := io.WriteString(p.Stdin(), input); err != nil {
		t.Fatal(err)
	}
	if err := p.Stdout().SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	return p, string(text)
}

// ended returns how a child ended.
func ended(t *testing.T, p *process.Process) string {
	t.Helper()
	select {
	case <-p.Done():
		return fmt.Sprint(p.Err())
	case <-time.After(patience):
		t.Fatal("the child lives on")
		return ""
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}` + "\n"
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	discover    = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}` + "\n"
)

func callOf(arguments string) string {
	return `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"work","arguments":` + arguments +
		`,"_meta":{"progressToken":7}}}` + "\n"
}

func TestStepsOfAChild(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script faulttest.Script
		input  string
		output string // all of it
		end    string
	}{
		{"bytes as they are", faulttest.Script{faulttest.Write("a\x00\xffb"), faulttest.Write("\n")}, "", "a\x00\xffb\n", "exit status 0"},
		{"a status", faulttest.Script{faulttest.Complain("why"), faulttest.Exit(3)}, "", "", "why"},
		{"a kill", faulttest.Script{faulttest.Die(), faulttest.Write("late")}, "", "", "killed"},
		{"an answer to what was not expected", faulttest.Script{faulttest.Expect("tools/call"), faulttest.Write("$ID $TOKEN")},
			initialize + callOf("{}"), `{"jsonrpc":"2.0","id":1,"result":`, "exit status 0"},
		{"the handshake", faulttest.Script{faulttest.Handshake(), faulttest.Exit(4)}, discover + initialize + initialized,
			`"error":{"code":-32601`, "status 4"},
		{"a closed stdout", faulttest.Script{faulttest.Close(faulttest.Stdout), faulttest.Drain()}, "", "", ""},
		{"a flood", faulttest.Script{faulttest.Flood(faulttest.Stdout, "y", 100_000)}, "", strings.Repeat("y", 100_000), "exit status 0"},
		{"an end of input", faulttest.Script{faulttest.Close(faulttest.Stdin), faulttest.Expect("")}, "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newChild(t, tt.script)
			p, output := play(t, c, tt.input)
			if !strings.Contains(output, tt.output) {
				t.Errorf("it wrote %.200q, want %.200q", output, tt.output)
			}
			if tt.end != "" && !strings.Contains(ended(t, p), tt.end) {
				t.Errorf("it ended with %q, want %q", ended(t, p), tt.end)
			}
		})
	}
}

func TestFilledInWrites(t *testing.T) {
	c := newChild(t, faulttest.Script{faulttest.Expect("tools/call"), faulttest.Write("$ID $TOKEN")})
	if _, output := play(t, c, callOf("{}")); output != `"c" 7` {
		t.Errorf("it wrote %q", output)
	}
}

func TestEachLifeHasItsScript(t *testing.T) {
	c := newChild(t, faulttest.Script{faulttest.Write("first")}, faulttest.Script{faulttest.Write("then")})
	for i, want := range []string{"first", "then", "then"} {
		if _, output := play(t, c, ""); output != want || c.Starts() != i+1 {
			t.Errorf("life %d wrote %q; %d starts", i, output, c.Starts())
		}
	}
}

func TestPauses(t *testing.T) {
	c := newChild(t, faulttest.Script{faulttest.Pause(100 * time.Millisecond)})
	began := time.Now()
	play(t, c, "")
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

func TestServingChildrenObeyOrders(t *testing.T) {
	answer := `{"jsonrpc":"2.0","id":"c","result":{"resultType":"complete","content":[{"type":"text","text":"x"}],"_meta":{"size":""}}}` + "\n"
	for _, tt := range []struct {
		order    string
		output   string
		executed int
		dead     bool
	}{
		{`{"id":"x"}`, answer, 1, false},
		{`{"id":"x","fate":"unread"}`, "", 0, true},
		{`{"id":"x","fate":"executed"}`, "", 1, true},
		{`{"id":"x","fate":"notified"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}` + "\n", 1, true},
		{`{"id":"x","fate":"half"}`, answer[:len(answer)/2], 1, true},
		{`{"id":"x","fate":"cut","at":5}`, answer[:5], 1, true},
		{`{"id":"x","fate":"answered"}`, answer, 1, true},
		{`{"id":"x","fate":"twice"}`, answer + answer, 1, false},
	} {
		t.Run(tt.order, func(t *testing.T) {
			c := newChild(t, faulttest.Script{faulttest.Serve()})
			p := start(t, c)
			if _, err := io.WriteString(p.Stdin(), callOf(tt.order)); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(tt.output))
			if _, err := io.ReadFull(p.Stdout(), got); err != nil || string(got) != tt.output {
				t.Errorf("it wrote %q, %v, want %q", got, err, tt.output)
			}
			if !tt.dead {
				_ = p.Stdin().Close()
			}
			if end := ended(t, p); strings.Contains(end, "killed") != tt.dead {
				t.Errorf("it ended with %q", end)
			}
			executed, err := c.Ledger().Executed()
			if err != nil || executed["x"] != tt.executed {
				t.Errorf("executed %d times, %v, want %d", executed["x"], err, tt.executed)
			}
		})
	}
}

func TestServingOverHTTP(t *testing.T) {
	for _, era := range []mcp.Era{mcp.Modern, mcp.Legacy} {
		t.Run(era.String(), func(t *testing.T) {
			c := newChild(t, faulttest.Script{faulttest.ServeHTTP("127.0.0.1:0")})
			c.Era = era
			p := start(t, c)
			address, err := bufio.NewReader(p.Stdout()).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			status := http.StatusOK
			if era == mcp.Legacy {
				status = http.StatusNotFound // there is no such session
			}
			for _, stream := range []string{"false", "true"} {
				resp, err := http.Post("http://"+strings.TrimSpace(address), "application/json",
					strings.NewReader(callOf(`{"id":"x","stream":`+stream+`}`)))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != status ||
					status == http.StatusOK && strings.HasPrefix(string(body), "data: ") != (stream == "true") {
					t.Errorf("got %s, %q, %v", resp.Status, body, err)
				}
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
}

func TestChildrenThatAreLeftAreFound(t *testing.T) {
	c := newChild(t, faulttest.Script{faulttest.Grandchild(), faulttest.Write("started"), faulttest.Hang()})
	p := start(t, c)
	if _, err := io.ReadFull(p.Stdout(), make([]byte, len("started"))); err != nil {
		t.Fatal(err)
	}
	if _, told := os.Stat("/proc/self/environ"); told == nil {
		if found := faulttest.Processes(c.Dir); len(found) != 2 {
			t.Errorf("found %v, want the child and the grandchild", found)
		}
	}
	before := faulttest.Leftovers{Goroutines: 1000, Descriptors: 1000}
	if _, err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if left := faulttest.Since(before, c.Dir); !left.None() {
		t.Errorf("%v are left", left)
	}
}
