package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/cli"

	json "github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect")

// The test binary stands in for the program, so that scripts can run it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mcpsplice": func() {
			streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
			os.Exit(int(cli.Main(context.Background(), os.Args[1:], streams)))
		},
		"canned": func() { os.Exit(canned(os.Args[1], os.Stdin, os.Stdout)) },
	})
}

func TestScripts(t *testing.T) { testscript.Run(t, scriptParams("testdata")) }

func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// The race detector waits a second before each exit.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Values[runningKey{}] = new(running)
			return nil
		},
		Cmds: scriptCommands(),
	}
}

func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"exits":  exits,
		"start":  start,
		"end":    end,
		"post":   post,
		"answer": answer,
		"mode":   mode,
		"talk":   talk,
	}
}

// exits runs a program that must end with a code: exits CODE PROGRAM ARGS...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// A running is the program in the background of a script.
type running struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer  // owned by read until it is done
	read   chan struct{} // closed when stderr has ended
}

type runningKey struct{}

var listening = regexp.MustCompile(`listening(?: on |":")([^"\s]+)`)

// start runs mcpsplice with arguments and waits until it listens; $URL is where,
// and $SSE where clients of HTTP with SSE are served.
func start(ts *testscript.TestScript, _ bool, args []string) {
	if !launch(ts, args) {
		ts.Fatalf("it has ended:\n%s", ts.Value(runningKey{}).(*running).stderr.String())
	}
}

// startAgain is start at the address at which it was before. Somebody else may have
// that for a moment: the system gives it to any connection.
func startAgain(ts *testscript.TestScript) {
	args := []string{"serve", "--listen", ts.Getenv("URL")}
	for began := time.Now(); !launch(ts, args); <-time.After(50 * time.Millisecond) {
		stderr := ts.Value(runningKey{}).(*running).stderr.String()
		if !strings.Contains(stderr, "address already in use") || time.Since(began) > 20*time.Second {
			ts.Fatalf("it has ended:\n%s", stderr)
		}
	}
}

// launch is start that reports false if the program has ended before it listens.
func launch(ts *testscript.TestScript, args []string) bool {
	r := ts.Value(runningKey{}).(*running)
	*r = running{cmd: exec.Command("mcpsplice", args...), read: make(chan struct{})}
	r.cmd.Dir = ts.Getenv("WORK")
	r.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	pipe, err := r.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(r.cmd.Start())
	cmd, read := r.cmd, r.read
	ts.Defer(func() {
		// It has ended, if the script has got as far as end.
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	urls := make(chan string, 1)
	go func() {
		defer close(r.read)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			r.stderr.WriteString(lines.Text() + "\n")
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case urls <- m[1]:
				default:
				}
			}
		}
	}()
	select {
	case url := <-urls:
		ts.Setenv("URL", url)
		ts.Setenv("SSE", strings.TrimSuffix(url, "/mcp")+"/sse")
	case <-r.read:
		return false
	case <-time.After(20 * time.Second):
		ts.Fatalf("it does not listen")
	}
	return true
}

// end interrupts what start has started, which must end with code 0, and shows
// its stderr as stdout.
func end(ts *testscript.TestScript, _ bool, _ []string) {
	r := ts.Value(runningKey{}).(*running)
	ts.Check(r.cmd.Process.Signal(os.Interrupt))
	<-r.read
	ts.Check(r.cmd.Wait())
	_, err := ts.Stdout().Write(r.stderr.Bytes())
	ts.Check(err)
}

// post sends a modern request from a file to $URL and shows the reply.
func post(ts *testscript.TestScript, _ bool, args []string) {
	body := ts.ReadFile(args[0])
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	ts.Check(json.Unmarshal([]byte(body), &m))
	req, err := http.NewRequest(http.MethodPost, ts.Getenv("URL"), strings.NewReader(body))
	ts.Check(err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": m.Method, "Mcp-Name": m.Params.Name,
	} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	_, err = io.Copy(ts.Stdout(), res.Body)
	ts.Check(errors.Join(err, res.Body.Close()))
}

// answer starts an HTTP server that answers everything with one status and, if
// they are given, one header and a body; $URL is where.
func answer(ts *testscript.TestScript, _ bool, args []string) {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if len(args) > 1 {
			name, value, _ := strings.Cut(args[1], ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		if len(args) > 2 {
			// Whoever has gone need not read it.
			_, _ = io.WriteString(w, args[2])
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("URL", server.URL+"/mcp")
}

// talk runs a program that speaks stdio, sends it the messages of a file, each
// request when the one before is answered, and shows the answers: talk FILE
// PROGRAM ARGS...
func talk(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = ts.Stderr()
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	watchdog := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	answers := bufio.NewReader(out)
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		_, err := io.WriteString(in, line)
		ts.Check(err)
		if !strings.Contains(line, `"id":`) {
			continue
		}
		answer, err := answers.ReadString('\n')
		ts.Check(err)
		_, err = io.WriteString(ts.Stdout(), answer)
		ts.Check(err)
	}
	ts.Check(in.Close())
	rest, err := io.ReadAll(answers)
	ts.Check(errors.Join(err, cmd.Wait()))
	_, err = ts.Stdout().Write(rest)
	ts.Check(err)
}

// mode checks the permissions of a file: mode 600 FILE.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

// TestEveryCommandHasAGoldenHelpText finds the commands in the help text of the
// program.
func TestEveryCommandHasAGoldenHelpText(t *testing.T) {
	script, err := os.ReadFile("testdata/help.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(script), "\nCommands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	commands := regexp.MustCompile(`(?m)^  (\S+)`).FindAllStringSubmatch(list, -1)
	if len(commands) < 3 {
		t.Fatalf("found the commands %q", commands)
	}
	for _, m := range commands {
		switch m[1] {
		case "completion", "help": // cobra's
			continue
		}
		if want := "exec mcpsplice " + m[1] + " --help\ncmp stdout " + m[1] + ".txt\n"; !strings.Contains(string(script), want) {
			t.Errorf("testdata/help.txtar lacks\n%s", want)
		}
	}
}
