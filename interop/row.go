package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A check is what came of one check of a row.
type check struct {
	Name   string `json:"check"`
	OK     bool   `json:"ok"`
	MS     int64  `json:"ms"`
	Detail string `json:"detail"`
	Same   string `json:"same,omitempty"` // has to be the same with and without a bridge
}

const (
	startLimit    = 30 * time.Second // for a listener to say where it listens
	clientLimit   = 80 * time.Second // for all checks of a row
	teardownLimit = 8 * time.Second  // for everything to be gone
)

// A runner runs one row, in a process of its own that adopts all that the row
// leaves behind.
type runner struct {
	// Set at construction.
	row   row
	tools tools
	logs  string
	tmp   string
	trace bool
	known []*expectation

	// Owned by run: the server of the HTTP forms, and its URL.
	server *process
	url    string
	port   string // that it has to listen on, empty for any
}

func newRunner(r row, o options, known []*expectation) (*runner, error) {
	dir := filepath.Join(o.logs, strings.ReplaceAll(r.String(), "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "interop-")
	if err != nil {
		return nil, err
	}
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return nil, err
	}
	for _, sub := range []string{"home", "root"} {
		if err := os.Mkdir(filepath.Join(tmp, sub), 0o755); err != nil {
			return nil, err
		}
	}
	return &runner{row: r, tools: o.tools, logs: dir, tmp: tmp, trace: o.trace, known: known}, nil
}

func (r *runner) run(ctx context.Context) []check {
	defer os.RemoveAll(r.tmp)
	profile, names, err := r.row.profile(r.tmp)
	if err != nil {
		return []check{{Name: "connect", Detail: err.Error()}}
	}
	target, bridge, err := r.start(ctx)
	checks := []check{}
	if err == nil {
		checks, err = r.runClient(ctx, target, profile, names)
	}
	for _, name := range names {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.Name == name }) {
			checks = append(checks, check{Name: name, Detail: fmt.Sprintf("not run: %v", err)})
		}
	}
	checks = append(checks, r.teardown(bridge))
	for i := range checks {
		checks[i].Detail = strings.ReplaceAll(checks[i].Detail, r.tmp, "$TMP")
		checks[i].Same = strings.ReplaceAll(checks[i].Same, r.tmp, "$TMP")
	}
	return checks
}

// start starts what listens, and gives the arguments that bring a client to
// it. The bridge is nil if there is none, or if the client starts it.
func (r *runner) start(ctx context.Context) (target []string, bridge *process, err error) {
	var server []string // how the bridge, or the client without one, reaches the server
	if r.row.serverOverHTTP() {
		if r.server, r.url, err = r.listener(ctx, "server", r.row.overHTTP()(r.tools)); err != nil {
			return nil, nil, err
		}
		url, err := r.tapURL("server", r.url)
		if err != nil {
			return nil, nil, err
		}
		server = []string{url}
	} else {
		server = r.tapCommand("server", r.row.server.stdio(r.tools, r.tmp))
	}
	if r.row.direct() {
		return r.reach(server), nil, nil
	}
	listen := "stdio"
	if r.row.clientOverHTTP() {
		listen = "http://127.0.0.1:0"
	}
	command := []string{r.tools.Mcpsplice, "serve", "--listen", listen}
	if !r.row.serverOverHTTP() {
		command = append(command, "--")
	}
	command = append(command, server...)
	if !r.row.clientOverHTTP() {
		return r.reach(r.tapCommand("client", command)), nil, nil
	}
	bridge, url, err := r.listener(ctx, "bridge", command)
	if err != nil {
		return nil, bridge, err
	}
	url, err = r.tapURL("client", url)
	return r.reach([]string{url}), bridge, err
}

// reach gives the arguments that bring a client to a URL or command.
func (r *runner) reach(target []string) []string {
	if r.row.clientOverSSE() {
		return []string{"--sse", strings.TrimSuffix(target[0], "/mcp") + "/sse"}
	}
	if r.row.clientOverHTTP() {
		return append([]string{"--http"}, target...)
	}
	return append([]string{"--stdio"}, target...)
}

func (r *runner) runClient(ctx context.Context, target []string, profile string, names []string) ([]check, error) {
	ctx, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	args := []string{"--profile", profile, "--checks", strings.Join(names, ","), "--era", r.row.era()}
	if brief := slices.DeleteFunc(slices.Clone(names), r.mayPass); len(brief) > 0 {
		args = append(args, "--brief", strings.Join(brief, ","))
	}
	out := clientOutput{restart: make(chan struct{}, 1)}
	p, err := r.spawn("client", append(append(r.row.client.command(r.tools), args...), target...), &out)
	if err != nil {
		return nil, err
	}
	for running := true; running; {
		select {
		case <-p.done:
			running = false
		case <-out.restart:
			err = r.restart(ctx)
		case <-ctx.Done():
			p.kill()
			err = fmt.Errorf("the client had not ended after %v", clientLimit)
			running = false
		}
	}
	_ = os.WriteFile(filepath.Join(r.logs, "client.out"), out.text.Bytes(), 0o644)
	var checks []check
	for line := range bytes.Lines(out.text.Bytes()) {
		var c check
		if json.Unmarshal(line, &c) == nil && c.Name != "" {
			checks = append(checks, c)
		}
	}
	if err == nil {
		err = fmt.Errorf("the client ended: %v", p.cmd.ProcessState)
	}
	return checks, err
}

// mayPass tells whether a check is not known to fail every time.
func (r *runner) mayPass(check string) bool {
	e := find(r.known, r.row, check)
	return e == nil || e.flaky
}

// A clientOutput is what a client prints. It is told when a line asks for a restart
// of the server.
type clientOutput struct {
	text    bytes.Buffer
	restart chan struct{} // holds a value if the client asks
}

func (o *clientOutput) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(`{"restart":true}`)) {
		select {
		case o.restart <- struct{}{}:
		default:
		}
	}
	return o.text.Write(b)
}

// restart kills the server of the HTTP forms and starts it on the same port.
func (r *runner) restart(ctx context.Context) error {
	if r.server == nil {
		return errors.New("the client asks for a restart of a server that it has started itself")
	}
	at, err := url.Parse(r.url)
	if err != nil {
		return err
	}
	r.server.kill()
	r.port = at.Port()
	r.server, _, err = r.listener(ctx, "server-again", r.row.overHTTP()(r.tools))
	return err
}

var listening = regexp.MustCompile(`listening on (https?://\S+)`)

// listener starts a command and waits for the line that says where it listens.
func (r *runner) listener(ctx context.Context, name string, command []string) (*process, string, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p, err := r.spawn(name, command, io.Discard)
	if err != nil {
		return nil, "", err
	}
	for {
		log, _ := os.ReadFile(p.log)
		if match := listening.FindSubmatch(log); match != nil {
			return p, string(match[1]), nil
		}
		select {
		case <-p.done:
			log, _ = os.ReadFile(p.log)
			return p, "", fmt.Errorf("%s ended at once: %v: %s", name, p.cmd.ProcessState, tail(log))
		case <-ctx.Done():
			return p, "", fmt.Errorf("%s did not say where it listens: %s", name, tail(log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func tail(log []byte) string {
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// A process is a command in a process group of its own.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

func (r *runner) spawn(name string, command []string, stdout io.Writer) (*process, error) {
	p := &process{log: filepath.Join(r.logs, name+".err"), done: make(chan struct{})}
	stderr, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(os.Environ(), "HOME="+filepath.Join(r.tmp, "home"), "INTEROP_MODE="+r.row.client.mode,
		"INTEROP_PORT="+r.port)
	p.cmd.Dir = r.tmp
	p.cmd.Stdout, p.cmd.Stderr = stdout, stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second // a grandchild may hold our pipe
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	return p, nil
}

func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// teardown ends the row and checks that nothing outlives it: the bridge gets a
// SIGTERM, or has already lost its client, and everything that it started has
// to be gone with it. The server of the HTTP forms is ours to end.
func (r *runner) teardown(bridge *process) check {
	start := time.Now()
	c := check{Name: "teardown"}
	var problems []error
	if bridge != nil {
		if exited(bridge) {
			problems = append(problems, fmt.Errorf("the bridge had ended before: %v", bridge.cmd.ProcessState))
		}
		_ = bridge.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-bridge.done:
			c.Detail = fmt.Sprintf("bridge: %v", bridge.cmd.ProcessState)
		case <-time.After(teardownLimit):
			problems = append(problems, fmt.Errorf("the bridge runs on %v after SIGTERM", teardownLimit))
		}
	}
	if r.server != nil {
		r.server.kill()
	}
	left := descendants()
	for ; len(left) > 0 && time.Since(start) < teardownLimit; left = descendants() {
		time.Sleep(20 * time.Millisecond)
	}
	for _, name := range slices.Sorted(maps.Values(left)) {
		problems = append(problems, fmt.Errorf("left behind: %s", name))
	}
	killAll()
	if err := errors.Join(problems...); err != nil {
		c.Detail = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	c.OK, c.MS = len(problems) == 0, time.Since(start).Milliseconds()
	return c
}

func exited(p *process) bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// killAll ends every descendant, and those that they start meanwhile.
func killAll() {
	for range 100 {
		left := descendants()
		if len(left) == 0 {
			return
		}
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// tapCommand puts a recorder of stdin and stdout before a command, if asked to.
func (r *runner) tapCommand(name string, command []string) []string {
	if !r.trace {
		return command
	}
	self, err := os.Executable()
	if err != nil {
		return command
	}
	return append([]string{self, "-tap", filepath.Join(r.logs, name+".trace")}, command...)
}

// tapURL puts a recording proxy before a URL, if asked to.
func (r *runner) tapURL(name, url string) (string, error) {
	if !r.trace {
		return url, nil
	}
	return tapHTTP(url, filepath.Join(r.logs, name+".trace"))
}

// rowMain is the process of one row. It prints its checks, a line each.
func rowMain(ctx context.Context, o options) error {
	if err := becomeReaper(); err != nil {
		return err
	}
	known, err := expectationsIn(o.expectations)
	if err != nil {
		return err
	}
	for _, r := range rows() {
		if r.String() != o.row {
			continue
		}
		runner, err := newRunner(r, o, known)
		if err != nil {
			return err
		}
		out := bufio.NewWriter(os.Stdout)
		for _, c := range runner.run(ctx) {
			line, err := json.Marshal(c)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n", line)
		}
		return out.Flush()
	}
	return fmt.Errorf("no row %s", o.row)
}
