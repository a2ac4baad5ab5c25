package contest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// Names of clients that others are compared with, or that the targets are about.
const (
	RawClient          = "raw"
	RawCopied          = "raw-copied"
	RawTyped           = "raw-typed"
	RawApart           = "raw-apart"
	NetHTTP            = "net-http"
	SpliceClient       = "mcpsplice-client"
	SpliceClientHandle = "mcpsplice-client-handle"
)

// A Client is a client program, which measures itself.
type Client struct {
	Name      string
	Program   Program
	Kind      string // of the client, if the program has several
	Script    bool   // Node runs it
	HTTPOnly  bool
	StdioOnly bool
	Revisions []wire.Revision
}

// Speaks reports whether the client speaks r.
func (c *Client) Speaks(r wire.Revision) bool { return slices.Contains(c.Revisions, r) }

// Goes reports whether the client goes over HTTP, or over stdio.
func (c *Client) Goes(http bool) bool { return http && !c.StdioOnly || !http && !c.HTTPOnly }

// Clients returns every client, in the order of the tables.
func Clients() []Client {
	return []Client{
		{Name: RawClient, Program: peers, Kind: "raw", Revisions: both},
		{Name: RawCopied, Program: peers, Kind: drive.Copied, Revisions: both},
		{Name: RawTyped, Program: peers, Kind: drive.Typed, Revisions: both},
		{Name: RawApart, Program: peers, Kind: drive.Apart, StdioOnly: true, Revisions: both},
		{Name: NetHTTP, Program: peers, Kind: drive.NetHTTP, HTTPOnly: true, Revisions: both},
		{Name: SpliceClient, Program: spliceServer, Kind: "typed", Revisions: both},
		{Name: SpliceClientHandle, Program: spliceServer, Kind: "raw", Revisions: both},
		{Name: "gosdk-client", Program: gosdk, Kind: "typed", Revisions: both},
		{Name: "mcpgo-client", Program: mcpgo, Kind: "typed", Revisions: both},
		{Name: "ts-client", Kind: "typed", Script: true, Revisions: both},
	}
}

// clientLimits are the clients that always take part.
var clientLimits = []string{RawClient, RawCopied, RawTyped, RawApart, NetHTTP}

// SelectClients returns the clients whose name matches, and the limits. Scripts take
// part if they are there.
func SelectClients(all []Client, name *regexp.Regexp, scripts bool) []Client {
	return slices.DeleteFunc(slices.Clone(all), func(c Client) bool {
		return c.Script && !scripts || !slices.Contains(clientLimits, c.Name) && !name.MatchString(c.Name)
	})
}

// Measure has the client do a task. Over stdio it starts the floor itself.
func (c *Client) Measure(ctx context.Context, p Paths, t drive.Task, home string) (*drive.Report, error) {
	t.Kind = c.Kind
	if t.Addr == "" {
		t.Command = p.floorStdio()
	}
	command, args := p.of(c.Program), t.Args()
	if c.Script {
		command, args = "node", append([]string{p.Script}, args...)
	}
	stderr := new(tail)
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Stderr = stderr
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home, "XDG_STATE_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, stderr)
	}
	var r drive.Report
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("reading its report: %w%s", err, stderr)
	}
	if r.Calls == 0 {
		return nil, errors.New("it made no calls")
	}
	return &r, nil
}

// FloorOverHTTP returns the server that clients are measured with over HTTP.
func FloorOverHTTP() Contestant {
	all := All()
	return all[slices.IndexFunc(all, func(c Contestant) bool { return c.Name == Floor && c.Transport == HTTP && !c.Bridge })]
}
