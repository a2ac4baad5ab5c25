package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

type serveOptions struct {
	*app

	// From the flags and arguments, checked.
	target    *target // nil for the demo
	demoEra   mcp.Era // clients that the demo is restricted to
	addresses []address
	pool      transport.PoolOptions
	logger    *slog.Logger

	flags serveFlags
	told  knownFailure // of the command
}

// serveFlags are the flags as they came.
type serveFlags struct {
	targetFlags
	poolFlags
	listen      []string
	trace       string
	logLevel    string
	hosts       []string
	origins     []string
	allowRemote bool
}

const serveLong = `Serve one MCP server to any number of clients: over stdio, over HTTP, or both,
to clients of every protocol revision, whatever the server itself speaks.

The server is started or connected to when the first request comes, and again
after it has ended. Without a target a built-in demo is served.

What a command writes to its stderr is shown on ours, each line with the program
and the number of the connection to it before it, as in [node#2].

On SIGINT, SIGTERM or SIGHUP calls in flight are given time to end, and the exit
code is 0. A second signal ends the program at once. With --listen stdio alone it
ends when its input does.`

const serveExample = `  # a server that speaks stdio, for clients that speak HTTP
  mcpsplice serve -- npx -y @modelcontextprotocol/server-everything

  # a server that speaks HTTP, for a host that starts its servers
  mcpsplice serve --listen stdio https://example.com/mcp`

func newServeCmd(a *app) *cobra.Command {
	o := &serveOptions{app: a}
	cmd := &cobra.Command{
		Use:                   "serve [flags] [URL | -- COMMAND ARGS...]",
		Short:                 "Serve a server, or the demo, over HTTP and stdio",
		Long:                  serveLong,
		Example:               serveExample,
		SuggestFor:            []string{"bridge", "proxy", "start", "connect"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return serveRun(cmd.Context(), o)
		},
	}
	fs, f := cmd.Flags(), &o.flags
	fs.SortFlags = false
	fs.StringArrayVar(&f.listen, "listen", nil, "serve at `URL`: http://HOST:PORT[/PATH], or stdio\n(repeatable; default "+defaultListen+")")
	f.targetFlags.add(cmd)
	fs.DurationVar(&f.timeout, "timeout", transport.DefaultMaxCall, "end a call after `TIME`")
	fs.Lookup("timeout").DefValue = "1h"
	f.poolFlags.add(cmd)
	fs.StringArrayVar(&f.hosts, "allow-host", nil, "serve requests for `HOST`, too (repeatable)")
	fs.StringArrayVar(&f.origins, "allow-origin", nil, "let web pages of `ORIGIN` in (repeatable)")
	fs.BoolVar(&f.allowRemote, "allow-remote", false, "serve beyond loopback without authentication")
	addTraceFlag(fs, &f.trace)
	fs.StringVar(&f.logLevel, "log-level", "info", "least `LEVEL` of log lines: debug, info, warn, error or off")
	a.addJSONFlag(cmd, "write log lines, addresses and errors as JSON")
	return cmd
}

// check turns flags and arguments into what serveRun needs.
func (o *serveOptions) check(cmd *cobra.Command, args []string) error {
	var err error
	f := &o.flags
	if o.target, err = f.target(cmd, args); err != nil {
		return err
	}
	if o.target != nil && o.target.demo {
		o.target = nil
		err = f.unused(cmd, "is not for the demo, which is a part of this program", "timeout", "isolation", "max-connections", "idle", "turn-wait")
		if err != nil {
			return err
		}
	}
	if o.target == nil {
		if o.demoEra, err = parseEra(f.era); err != nil {
			return err
		}
	}
	if o.addresses, err = parseAddresses(f.listen); err != nil {
		return err
	}
	if err = checkGuests(f.hosts, f.origins); err != nil {
		return err
	}
	if o.pool, err = f.poolFlags.options(cmd); err != nil {
		return err
	}
	if f.timeout <= 0 {
		return usagef("", "--timeout must be more than 0")
	}
	o.authorized = givesToken(cmd)
	o.logger, err = o.newLogger(f.logLevel)
	return err
}

// newLogger returns a log to stderr.
func (a *app) newLogger(text string) (*slog.Logger, error) {
	var level slog.Level
	switch text {
	case "off":
		return slog.New(slog.DiscardHandler), nil
	case "debug", "info", "warn", "error":
		if err := level.UnmarshalText([]byte(text)); err != nil {
			return nil, err
		}
	default:
		return nil, usagef("", "--log-level must be debug, info, warn, error or off, not %q", text)
	}
	options := &slog.HandlerOptions{Level: level}
	if a.asJSON {
		return slog.New(slog.NewJSONHandler(a.Err, options)), nil
	}
	return slog.New(slog.NewTextHandler(a.Err, options)), nil
}

// serveRun serves until ctx is done or nobody can come any more.
func serveRun(ctx context.Context, o *serveOptions) (err error) {
	// Otherwise a host that closes our stderr ends us at the first log line.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	unhook := context.AfterFunc(ctx, func() { o.logger.Info("shutting down; a second signal ends the program at once") })
	defer unhook()
	trace, err := openTrace(o.flags.trace, o.Err)
	if err != nil {
		return err
	}
	handler, closeHandler := o.handler(trace)
	listeners, err := listenAll(o.addresses, &listenOptions{
		streams: o.Streams, handler: handler, era: o.demoEra,
		hosts: o.flags.hosts, origins: o.flags.origins, allowRemote: o.flags.allowRemote,
		logger: o.logger, tap: trace.tap("listen"), timeout: o.flags.timeout,
	})
	if err == nil {
		o.announce(listeners)
		o.tellMissing()
		err = serveAll(ctx, listeners)
	}
	ending := errors.Join(closeHandler(), trace.Close())
	if ctx.Err() != nil {
		// We were asked to end, and we have.
		if err = errors.Join(err, ending); err != nil {
			o.logger.Warn("not everything ended well", "err", err)
		}
		return nil
	}
	return errors.Join(err, ending)
}

// handler returns what is served.
func (o *serveOptions) handler(trace *trace) (handler mcp.Handler, closeHandler func() error) {
	if o.target == nil {
		return newDemo(), func() error { return nil }
	}
	logger := slog.New(failureLog{o.logger.Handler(), &o.told, o.hint})
	d := &dialer{app: o.app, target: o.target, logger: logger, tap: trace.tap("dial")}
	pool := d.pool(o.pool)
	return logFailures(pool, o.logger), pool.Close
}

// listenAll opens all listeners, or none.
func listenAll(addresses []address, o *listenOptions) ([]*listener, error) {
	var all []*listener
	for _, a := range addresses {
		l, err := listen(a, o)
		if err != nil {
			for _, opened := range all {
				err = errors.Join(err, opened.close())
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// serveAll serves until every listener has ended. The failure of one ends all.
func serveAll(ctx context.Context, listeners []*listener) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range listeners {
		group.Go(func() error { return l.serve(ctx) })
	}
	return group.Wait()
}

// announce says where clients are served, and of the demo how it is called.
func (o *serveOptions) announce(listeners []*listener) {
	for _, l := range listeners {
		if o.asJSON {
			o.errLine(struct {
				Listening string `json:"listening"`
			}{l.url})
			continue
		}
		o.notice("listening on %s", l.url)
	}
	if o.target != nil || o.asJSON {
		return
	}
	for _, l := range listeners {
		if strings.HasPrefix(l.url, "http:") {
			// Whom stderr does not reach cannot be told so.
			_, _ = o.Err.Write([]byte(guide(l.url, l.sse)))
			return
		}
	}
}
