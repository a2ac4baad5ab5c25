package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"

	json "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"
)

type probeOptions struct {
	*app
	flags  targetFlags
	target *target
	trace  string
}

const probeLong = `Connect to an MCP server, find out what it is, and disconnect.

The exit code makes it a check of the server's health: 0 means that it answered
the handshake and one request after it.`

func newProbeCmd(a *app) *cobra.Command {
	o := &probeOptions{app: a}
	cmd := &cobra.Command{
		Use:                   "probe [flags] URL | -- COMMAND ARGS...",
		Short:                 "Find out what a server is, and whether it answers",
		Long:                  probeLong,
		Example:               "  mcpsplice probe https://example.com/mcp\n  mcpsplice probe -- npx -y @modelcontextprotocol/server-everything",
		SuggestFor:            []string{"ping", "inspect", "info", "check"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 && cmd.ArgsLenAtDash() < 0 {
				return usagef(exampleOf(cmd), "no server is named")
			}
			if o.flags.timeout <= 0 {
				return usagef("", "--timeout must be more than 0")
			}
			if o.target, err = o.flags.target(cmd, args); err != nil {
				return err
			}
			if o.target.demo && o.trace != "" {
				return usagef("", "--trace is not for the demo, to which nothing is sent")
			}
			return probeRun(cmd.Context(), o)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	o.flags.add(cmd)
	fs.DurationVar(&o.flags.timeout, "timeout", 30*time.Second, "give up after `TIME`")
	addTraceFlag(fs, &o.trace)
	a.addJSONFlag(cmd, "print one JSON object")
	return cmd
}

// A finding is what a probe found out.
type finding struct {
	Target       string         `json:"target"`
	Transport    string         `json:"transport"`
	Era          string         `json:"era"`
	Revision     mcp.Revision   `json:"revision"`
	Server       jsontext.Value `json:"server"` // null if it does not name itself
	Capabilities jsontext.Value `json:"capabilities"`
	Connect      float64        `json:"connect_ms"`
	RoundTrip    float64        `json:"round_trip_ms"`
	Request      string         `json:"round_trip"` // the method that was timed
}

func probeRun(ctx context.Context, o *probeOptions) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.flags.timeout)
	defer cancel()
	trace, err := openTrace(o.trace, o.Err)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trace.Close()) }()
	f, err := o.probe(ctx, trace.tap("dial"))
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &timeoutError{o.flags.timeout, err}
	case err != nil:
		return err
	case o.asJSON:
		return o.outLine(f)
	}
	return o.table(f.rows())
}

func (o *probeOptions) probe(ctx context.Context, tap transport.Tap) (*finding, error) {
	d := &dialer{app: o.app, target: o.target, logger: slog.New(slog.DiscardHandler), tap: tap, quiet: true}
	defer o.tellWaiting(o.target)()
	start := time.Now()
	edge, err := d.dial(ctx, &mcp.Metadata{})
	if err != nil {
		return nil, err
	}
	connected := time.Since(start)
	f, err := roundTrip(ctx, edge)
	// A server that has answered is well, however it takes leave.
	_ = edge.Close()
	if err != nil {
		return nil, err
	}
	o.tellNoise(edge)
	f.Target, f.Transport, f.Connect = o.target.String(), transportOf(o.target, edge), millis(connected)
	return f, nil
}

// tellNoise tells of what a server writes to its stdout that is no message: we pass
// over it, as few others do.
func (o *probeOptions) tellNoise(edge transport.Edge) {
	noisy, ok := edge.(interface{ Noise() int64 })
	if !ok || o.target.command == nil || noisy.Noise() == 0 {
		return
	}
	o.notice("the server writes lines to stdout that are no messages (%d so far): that is for stderr, and some clients fail at it", noisy.Noise())
}

// roundTrip makes one request that any server of the era must answer.
func roundTrip(ctx context.Context, edge transport.Edge) (*finding, error) {
	info := edge.Server()
	method := mcp.MethodDiscover
	if info.Era == mcp.Legacy {
		method = mcp.MethodPing
	}
	start := time.Now()
	_, err := edge.Handle(ctx, &mcp.Request{Method: method}, mcp.NoCaller{})
	took := time.Since(start)
	if err != nil && !jsonrpc.FromPeer(err) { // an error is an answer, too
		return nil, err
	}
	capabilities, _ := info.Discover.Lookup("capabilities")
	return &finding{
		Era: info.Era.String(), Revision: info.Revision,
		Server: mcp.ServerInfo(&info.Discover), Capabilities: capabilities,
		RoundTrip: millis(took), Request: method,
	}, nil
}

func millis(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond).Microseconds()) / 1000
}

// rows are the finding as people read it.
func (f *finding) rows() [][2]string {
	rows := [][2]string{
		{"target", f.Target},
		{"transport", f.Transport},
		{"era", f.Era},
		{"revision", string(f.Revision)},
		{"server", serverName(f.Server)},
		{"capabilities", capabilityNames(f.Capabilities)},
		{"connect", fmt.Sprintf("%.1f ms", f.Connect)},
		{"round trip", fmt.Sprintf("%.1f ms (%s)", f.RoundTrip, f.Request)},
	}
	for i := range rows {
		rows[i][1] = strings.Map(printable, rows[i][1])
	}
	return rows
}

func serverName(info jsontext.Value) string {
	var server mcp.Implementation
	if err := json.Unmarshal(info, &server); err != nil || server.Name == "" {
		return "(does not name itself)"
	}
	return strings.TrimSpace(server.Name + " " + server.Version)
}

// capabilityNames lists capabilities, with what they say yes to.
func capabilityNames(capabilities jsontext.Value) string {
	var names []string
	all := jsonrpc.Trusted(capabilities)
	for name, raw := range all.Members() {
		capability := jsonrpc.Trusted(raw)
		var details []string
		for detail, value := range capability.Members() {
			if string(value) != "false" {
				details = append(details, detail)
			}
		}
		if len(details) > 0 {
			name += " (" + strings.Join(details, ", ") + ")"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
