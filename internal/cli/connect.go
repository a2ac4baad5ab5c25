package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/spf13/cobra"
)

// This file holds what the commands have in common that use a server.

// targetHelp is the end of their help texts.
const targetHelp = `

TARGET is the URL of a server, or "demo" for the built-in one. A server that a
command starts is named at the end, after the other arguments: -- COMMAND ARGS...`

// clientOptions are those of every command that uses a server.
type clientOptions struct {
	*app
	target *target
	flags  clientFlags
	level  mcp.Level // of the log messages that are wanted
	roots  []mcp.Root
}

// clientFlags are the flags as they came.
type clientFlags struct {
	targetFlags
	log   string
	roots []string
	trace string
}

func (o *clientOptions) addFlags(cmd *cobra.Command, jsonUsage string) {
	fs, f := cmd.Flags(), &o.flags
	f.add(cmd)
	fs.DurationVar(&f.timeout, "timeout", client.DefaultTimeout, "give up after `TIME` without an answer or progress")
	fs.StringVar(&f.log, "log", "", "show log messages of `LEVEL` and above: debug, info, notice,\nwarning, error, critical, alert or emergency; and what the\ncommand writes to its stderr")
	addTraceFlag(fs, &f.trace)
	o.addJSONFlag(cmd, jsonUsage)
}

func (o *clientOptions) addRootFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.flags.roots, "root", nil, "tell the server that it may work on `DIR` (repeatable)")
}

// check turns the flags and the arguments into what is needed to connect, and
// returns the arguments beside the target.
func (o *clientOptions) check(cmd *cobra.Command, args []string) ([]string, error) {
	var err error
	if o.target, args, err = o.flags.targetAnd(cmd, args); err != nil {
		return nil, err
	}
	if o.flags.timeout <= 0 {
		return nil, usagef("", "--timeout must be more than 0")
	}
	if o.target.demo && o.flags.trace != "" {
		return nil, usagef("", "--trace is not for the demo, to which nothing is sent")
	}
	if o.level = mcp.Level(o.flags.log); o.level != "" && !o.level.Valid() {
		return nil, usagef("", "--log must be debug, info, notice, warning, error, critical, alert or emergency, not %q", o.flags.log)
	}
	o.roots, err = parseRoots(o.flags.roots)
	return args, err
}

// listed says how the features of a kind are found out.
func (o *clientOptions) listed(plural string) string {
	command := "mcpsplice ls"
	if plural != "tools" {
		command += " --" + plural
	}
	if o.target.command != nil {
		command += " --"
	}
	return command + " " + o.target.String() + " lists them"
}

func parseRoots(dirs []string) ([]mcp.Root, error) {
	var roots []mcp.Root
	for _, dir := range dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, usagef("", "--root: %w", err)
		}
		if info, err := os.Stat(path); err != nil {
			return nil, usagef("", "--root: %w", err)
		} else if !info.IsDir() {
			return nil, usagef("", "--root: %s is no directory", dir)
		}
		slashed := filepath.ToSlash(path)
		if !strings.HasPrefix(slashed, "/") {
			slashed = "/" + slashed // C:\dir
		}
		u := url.URL{Scheme: "file", Path: slashed}
		roots = append(roots, mcp.Root{URI: u.String(), Name: filepath.Base(path)})
	}
	return roots, nil
}

// with connects to the target, has f use the connection, and disconnects. Heal
// says whether a lost connection is made again unasked, which is told to people.
func (o *clientOptions) with(ctx context.Context, heal bool, f func(context.Context, *client.Client) error) (err error) {
	trace, err := openTrace(o.flags.trace, o.Err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trace.Close()) }()
	target := o.clientTarget(trace.tap("dial"))
	opts := o.clientOptions()
	if heal {
		opts.State = newStateTeller(o.app)
	}
	opts.Healing.Off = !heal
	c, err := o.connect(ctx, target, opts)
	if err != nil {
		return err
	}
	err = f(ctx, c)
	o.console.show("")
	// A server that has answered is well, however it takes leave.
	_ = c.Close()
	return err
}

// connect connects within the time that a call has.
func (o *clientOptions) connect(ctx context.Context, target client.Target, opts *client.Options) (*client.Client, error) {
	within, cancel := context.WithTimeout(ctx, o.flags.timeout)
	defer cancel()
	defer o.tellWaiting(o.target)()
	c, err := client.Connect(within, target, opts)
	if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		err = &timeoutError{o.flags.timeout, err}
	}
	return c, connecting(o.target, err)
}

// quickly is how long people wait without being told what for.
const quickly = time.Second

// tellWaiting shows that a server lets us wait, as a command does that installs itself
// first, until the function that it returns is called.
func (a *app) tellWaiting(t *target) (over func()) {
	shown := make(chan struct{})
	waiting := time.AfterFunc(quickly, func() {
		defer close(shown)
		a.console.show("waiting for " + t.String())
	})
	return func() {
		if !waiting.Stop() {
			<-shown
		}
		a.console.show("")
	}
}

func (o *clientOptions) clientOptions() *client.Options {
	server := o.target.String()
	if o.target.command != nil {
		server = shorten(server, maxShownType)
	}
	questions := newForms(o.app, server)
	opts := &client.Options{
		Info: implementation(), Era: o.target.era,
		Timeout: o.flags.timeout, MaxTimeout: max(o.flags.timeout, client.DefaultMaxTimeout),
		Elicit: questions.answer, ElicitURL: true,
		LogLevel: o.level, Logger: slog.New(warnings{o.app}),
	}
	if o.level != "" {
		opts.Log = o.log
	}
	if o.roots != nil {
		opts.Roots = func(context.Context) ([]mcp.Root, error) { return o.roots, nil }
	}
	return opts
}

func (o *clientOptions) clientTarget(tap transport.Tap) client.Target {
	switch {
	case o.target.demo:
		return demoServer{client.Handler(newDemo())}
	case o.target.url != nil:
		t := client.URL(o.target.url.String())
		t.Options.Header, t.Options.Binding, t.Options.Tap = o.target.header, o.target.binding, tap
		return t
	}
	t := client.Command("")
	t.Command, t.Options.Tap, t.Options.Stderr = *o.target.command, tap, io.Discard
	if o.level != "" {
		return &loggedCommand{CommandTarget: t, app: o.app}
	}
	return t
}

// A demoServer is the built-in server by its name.
type demoServer struct{ client.Target }

func (demoServer) String() string { return demoTarget }

// log shows a log message.
func (o *clientOptions) log(m *mcp.LogParams) {
	if !o.level.Includes(m.Level) { // legacy servers may not care
		return
	}
	if o.asJSON {
		o.errLine(m)
		return
	}
	text, ok := jsonrpc.Unquote(m.Data)
	if !ok {
		text = string(m.Data)
	}
	from := m.Logger
	if from == "" {
		from = "server"
	}
	line := strings.Map(printable, string(m.Level)+" "+from+": "+text)
	// Whom stderr does not reach cannot be told so.
	_, _ = io.WriteString(o.Err, line+"\n")
}

// newStateTeller returns what tells people that a connection was lost, and made
// again.
func newStateTeller(a *app) func(client.State, error) {
	lost := false
	return func(state client.State, err error) {
		switch {
		case errors.Is(err, mcp.ErrClosed): // by ourselves
		case state == client.Connected && lost:
			lost = false
			a.notice("connected again")
		case err != nil && state == client.Held:
			a.notice("%s", strings.Map(printable, err.Error()))
		case err != nil && state == client.Waiting && !lost, err != nil && state == client.Connecting && !lost:
			lost = true
			a.notice("the connection is lost and will be made again: %s", clean(innermost(err)))
		}
	}
}

// progress returns what shows the progress of a call. It is asked for even if
// nobody sees it, since it puts the timeout off.
func (o *clientOptions) progress() func(*mcp.ProgressParams) {
	began := time.Now()
	return func(p *mcp.ProgressParams) { o.console.show(progressLine(p, time.Since(began))) }
}
