package client

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
	"github.com/mcpsplice/mcpsplice/transport/streamable"
)

// Options configure a [Client]. The zero value is usable: a client that can be
// asked nothing.
type Options struct {
	// Info is what the client calls itself. Default: mcpsplice.
	Info mcp.Implementation
	// Era is the server's, if it is known; NoEra finds out, and prefers the
	// modern one.
	Era mcp.Era
	// Prior is what [Client.Verdict] said of the same server before: it is
	// believed until the server shows otherwise. If that was modern, Connect
	// asks nothing, and does not find out whether the server is there.
	Prior *Verdict

	// Timeout is how long a call may go on without progress, and MaxTimeout
	// with it; the time in which a question of the call is open does not count.
	// Defaults DefaultTimeout and DefaultMaxTimeout; what is negative is none.
	// [CallOptions] can say otherwise for one call. Requests for the result of a
	// task (tasks/result) and to listen have neither, unless those say so.
	Timeout    time.Duration
	MaxTimeout time.Duration

	// Elicit answers elicitation/create: with a form filled in, which gets the
	// schema's defaults where it lacks fields, or after a URL was opened
	// (params.Mode says which, as far as ElicitURL allows it). Nil declares that
	// nobody can be asked.
	Elicit func(ctx context.Context, params *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// ElicitURL declares that Elicit also takes URLs. It is asked once for each URL
	// of a call, which then waits for up to [MaxPageWait] while its server wants that
	// one.
	ElicitURL bool
	// ElicitDone is told that what a user was to do at a URL is done, with the id
	// that Elicit got ([mcp.ElicitParams].ElicitationID): once for each, if the
	// server tells at all, which only legacy ones do. It may be called while
	// Elicit has not returned, and concurrently. A call that was refused until
	// its user had opened pages is made again then.
	ElicitDone func(elicitationID string)
	// Sample answers sampling/createMessage. Nil declares that there is no
	// model.
	Sample func(ctx context.Context, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	// SampleTools declares that Sample takes tools.
	SampleTools bool
	// Roots answers roots/list. Nil declares that there are no roots;
	// [Client.RootsChanged] tells servers that they have changed.
	Roots func(ctx context.Context) ([]mcp.Root, error)
	// Extensions and Experimental are declared as they are.
	Extensions   mcp.Object
	Experimental mcp.Object
	// Capabilities are declared instead of all that, as JSON: for who makes
	// calls of others with [Client.Handle], which have others to ask.
	Capabilities mcp.JSON

	// LogLevel is the least severe log message that is wanted; empty for none.
	LogLevel mcp.Level
	// Log gets log messages: those of a call in order before it returns, and
	// those outside calls in order. It may be called concurrently for these. A
	// legacy server may send those of a call on another stream than its response,
	// which then waits for them, 5 ms at most; later ones count as outside calls.
	Log func(*mcp.LogParams)

	// Repeat says which tools may be called again when it is not known whether
	// a call was executed. Nil stands for those that are annotated as read-only
	// or idempotent. It is asked when tools are listed, which the client does
	// itself before it repeats a call of one that was listed before.
	Repeat func(tool *mcp.Tool) bool
	// Output says what becomes of a result of [Client.CallTool] that is not as
	// the tool's output schema has it, if that is known from a list. Default
	// RefuseOutput. Schemas that cannot be checked are not: those of other
	// dialects, with references to elsewhere, or beyond the limits that package
	// server documents.
	Output OutputCheck
	// Healing bounds connecting again.
	Healing Healing
	// State is told each change of the connection's state, in order, and why it
	// is no better. Nothing but Close waits for it; if it takes long it misses some.
	State func(State, error)
	// Logger gets what the client does on its own account. Nil for silence.
	Logger *slog.Logger
}

// Healing bounds how a connection that has ended is made again. The zero value
// is usable.
type Healing struct {
	// Off leaves it to calls to connect again: nothing is done unasked.
	Off bool
	// MinWait and MaxWait bound the wait before an attempt, which is random up
	// to a bound that doubles from MinWait to MaxWait. A call ends it, the first
	// one at once, and each later one no sooner than after a tenth of the last
	// bound. Defaults DefaultMinWait and DefaultMaxWait.
	MinWait, MaxWait time.Duration
	// Crashes is how many attempts and connections may fail within Window;
	// then nothing is attempted until one of them is older. Defaults
	// DefaultCrashes and DefaultWindow.
	Crashes int
	Window  time.Duration
}

// Defaults of [Options] and [Healing].
const (
	DefaultTimeout    = 30 * time.Second
	DefaultMaxTimeout = 10 * time.Minute
	DefaultMinWait    = 500 * time.Millisecond
	DefaultMaxWait    = 30 * time.Second
	DefaultCrashes    = 12
	DefaultWindow     = time.Minute
)

// A Verdict is what was found out about a server: how it is spoken to.
type Verdict struct {
	Era      mcp.Era
	Revision mcp.Revision
	Binding  streamable.Binding // of a [URLTarget]; empty for others
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Info.Name == "" {
		d.Info = mcp.Implementation{Name: "mcpsplice", Version: "0"}
	}
	if d.Timeout == 0 {
		d.Timeout = DefaultTimeout
	}
	if d.MaxTimeout == 0 {
		d.MaxTimeout = DefaultMaxTimeout
	}
	if d.Repeat == nil {
		d.Repeat = repeatAnnotated
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	d.Healing = d.Healing.withDefaults()
	return d
}

func (h Healing) withDefaults() Healing {
	if h.MinWait <= 0 {
		h.MinWait = DefaultMinWait
	}
	if h.MaxWait <= 0 {
		h.MaxWait = DefaultMaxWait
	}
	if h.Crashes <= 0 {
		h.Crashes = DefaultCrashes
	}
	if h.Window <= 0 {
		h.Window = DefaultWindow
	}
	return h
}

// capabilities are what the client declares: what it has functions for.
func (o *Options) capabilities() mcp.ClientCapabilitySet {
	set := mcp.ClientCapabilitySet{Extensions: o.Extensions, Experimental: o.Experimental}
	if o.Elicit != nil {
		set.Elicitation = &mcp.ElicitationCapability{}
		if o.ElicitURL {
			set.Elicitation = &mcp.ElicitationCapability{Form: mcp.Object{}, URL: mcp.Object{}}
		}
	}
	if o.Sample != nil {
		set.Sampling = &mcp.SamplingCapability{}
		if o.SampleTools {
			set.Sampling.Tools = mcp.Object{}
		}
	}
	if o.Roots != nil {
		set.Roots = &mcp.ListCapability{ListChanged: true}
	}
	return set
}

// dialOptions are those of each connection.
func (o *Options) dialOptions() (transport.DialOptions, error) {
	capabilities := o.Capabilities
	if capabilities == nil {
		var err error
		if capabilities, err = mcp.NewJSON(o.capabilities()); err != nil {
			return transport.DialOptions{}, err
		}
	}
	return transport.DialOptions{
		Era: o.Era, Client: o.Info.JSON(), Capabilities: capabilities, Logger: o.Logger,
		MaxCall: unlimited, // the client's own clock ends calls
	}, nil
}
