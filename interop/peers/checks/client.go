// Package checks is what the clients written in Go share: the command line, and
// the checks of peers/node/checks.mjs.
package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A Client is an adapter over the SDK that it stands for.
type Client interface {
	// Connect returns what the server calls itself and the revision in use.
	Connect(ctx context.Context) (server, version string, err error)
	// Tools returns the names of all tools, and the tools for the digest.
	Tools(ctx context.Context) (names []string, all any, err error)
	Resources(ctx context.Context) (uris []string, err error)
	Prompts(ctx context.Context) (names []string, err error)
	// Call calls a tool. A progress token other than "" has the notifications
	// given to Seen.Progress.
	Call(ctx context.Context, tool string, args map[string]any, token string) (Result, error)
	// Read returns the text of a resource, and its contents for the digest.
	Read(ctx context.Context, uri string) (text string, contents any, err error)
	Prompt(ctx context.Context, name string, args map[string]string) (messages any, err error)
	Complete(ctx context.Context, prompt, argument, value string) ([]string, error)
	SetLevel(ctx context.Context, level string) error
	// Subscribe has Seen.Updated told of a resource's changes, and Listen
	// Seen.Changed of those of a list, until stop is called.
	Subscribe(ctx context.Context, uri string) (stop func() error, err error)
	Listen(ctx context.Context, kind string) (stop func() error, err error)
	// Refused returns the error that a server has answered with, and its code
	// if the SDK tells; ok is false for an error of another kind.
	Refused(err error) (text string, code int, ok bool)
	Close() error
}

// A Result is the result of a tool.
type Result struct {
	Text       string
	Failed     bool
	Structured any // nil if there is none
}

// Modern is the oldest revision of the modern era.
const Modern = "2026-07-28"

// Options are what the command line says.
type Options struct {
	Profile Profile
	HTTP    string   // Streamable HTTP
	SSE     string   // HTTP with SSE
	Stdio   []string // a command
	Legacy  bool     // the mode of the environment

	checks []string
	brief  []string // of them those that are known to fail
	era    string
}

// Revision returns the revision that a legacy client asks for.
func (o Options) Revision() string {
	if o.SSE != "" {
		return "2024-11-05" // the one that HTTP with SSE belongs to
	}
	return "2025-11-25"
}

// A Profile says what the server is called and which of its tools do what.
type Profile struct {
	Server string   `json:"server"`
	Root   string   `json:"root"`
	Tools  []string `json:"tools"`
	Echo   struct {
		Prefix string `json:"prefix"`
		At     []any  `json:"at"` // where in the structured content it is, nil for the text
		Steps  []call `json:"steps"`
	} `json:"echo"`
	Fail        *call `json:"fail"`
	Read        want  `json:"read"`
	Prompt      want  `json:"prompt"`
	Progress    call  `json:"progress"`
	Cancel      call  `json:"cancel"`
	Meet        call  `json:"meet"`
	Log         call  `json:"log"`
	Updated     call  `json:"updated"`
	ListChanged call  `json:"listchanged"`
	Elicit      call  `json:"elicit"`
	Sealed      call  `json:"sealed"`
	Sample      call  `json:"sample"`
	Roots       call  `json:"roots"`
	URL         call  `json:"url"`
	URLError    call  `json:"urlerror"`
	Exact       call  `json:"exact"`
	Heal        call  `json:"heal"` // no tool means none that takes its time
	Decline     struct {
		Tool string            `json:"tool"`
		Args map[string]any    `json:"args"`
		Want map[string]string `json:"want"` // by action
	} `json:"decline"`
	Structured struct {
		Tool string         `json:"tool"`
		Args map[string]any `json:"args"`
		Want map[string]any `json:"want"`
	} `json:"structured"`
	Complete struct {
		Prompt   string   `json:"prompt"`
		Argument string   `json:"argument"`
		Value    string   `json:"value"`
		Want     []string `json:"want"`
	} `json:"complete"`
}

type call struct {
	Tool  string         `json:"tool"`
	Args  map[string]any `json:"args"`
	Want  string         `json:"want"`
	Count string         `json:"count"`
	URI   string         `json:"uri"`
	Kind  string         `json:"kind"`
	Grown string         `json:"grown"`
	File  string         `json:"file"` // where the server writes its executions down
}

type want struct {
	URI  string            `json:"uri"`
	Name string            `json:"name"`
	Args map[string]string `json:"args"`
	Want string            `json:"want"`
}

func parseArgs(args []string) (Options, error) {
	opts := Options{era: "any", Legacy: os.Getenv("INTEROP_MODE") == "legacy"}
	for len(args) >= 2 {
		switch args[0] {
		case "--profile":
			if err := json.Unmarshal([]byte(args[1]), &opts.Profile); err != nil {
				return opts, err
			}
		case "--checks":
			opts.checks = strings.Split(args[1], ",")
		case "--brief":
			opts.brief = strings.Split(args[1], ",")
		case "--era":
			opts.era = args[1]
		case "--http":
			opts.HTTP = args[1]
		case "--sse":
			opts.SSE = args[1]
		case "--stdio":
			opts.Stdio = args[1:]
			return opts, nil
		default:
			return opts, fmt.Errorf("unknown argument %s", args[0])
		}
		args = args[2:]
	}
	return opts, nil
}

// A line is what is printed about one check.
type line struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	MS     int64  `json:"ms"`
	Detail string `json:"detail"`
	Same   string `json:"same,omitempty"`
}

// Main runs the checks of the command line with the client that it makes, and
// prints a line for each.
func Main(makeClient func(Options, *Seen) Client) {
	opts, err := parseArgs(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	seen := newSeen()
	r := &runner{opts: opts, seen: seen, client: makeClient(opts, seen)}
	for _, name := range opts.checks {
		l, err := json.Marshal(r.run(name))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Println(string(l))
	}
	if !r.connected {
		return
	}
	if err := r.client.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "close:", err)
	}
}

func (r *runner) run(name string) line {
	l := line{Check: name}
	r.brief = slices.Contains(r.opts.brief, name)
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	if name == "connect" {
		ctx = context.Background() // the stdio child's life hangs on it
	}
	detail, same, err := r.check(ctx, name)
	l.MS = time.Since(start).Milliseconds()
	l.OK, l.Detail, l.Same = err == nil, detail, same
	if err != nil {
		l.Detail = r.describe(err)
	}
	return l
}

func (r *runner) describe(err error) string {
	text := err.Error()
	if _, code, ok := r.client.Refused(err); ok && code != 0 {
		text = fmt.Sprintf("%s (code %d)", text, code)
	}
	return text[:min(len(text), 400)]
}
