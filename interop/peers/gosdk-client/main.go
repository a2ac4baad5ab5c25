// Command gosdk-client is a client made with the official Go SDK. The variable
// INTEROP_MODE chooses legacy or auto. It runs the same checks as
// peers/node/checks.mjs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	opts, err := parseArgs(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c := newClient(opts)
	for _, name := range opts.checks {
		line, _ := json.Marshal(c.run(name))
		fmt.Println(string(line))
	}
	if c.session != nil {
		if err := c.session.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close:", err)
		}
	}
}

type options struct {
	profile profile
	checks  []string
	era     string
	http    string
	stdio   []string
}

// A profile says what the server is called and which of its tools do what.
type profile struct {
	Server string   `json:"server"`
	Root   string   `json:"root"`
	Tools  []string `json:"tools"`
	Echo   struct {
		Prefix string `json:"prefix"`
		Steps  []call `json:"steps"`
	} `json:"echo"`
	Fail        *call `json:"fail"`
	Read        want  `json:"read"`
	Prompt      want  `json:"prompt"`
	Progress    call  `json:"progress"`
	Cancel      call  `json:"cancel"`
	Log         call  `json:"log"`
	Updated     call  `json:"updated"`
	ListChanged call  `json:"listchanged"`
	Elicit      call  `json:"elicit"`
	Sample      call  `json:"sample"`
	Roots       call  `json:"roots"`
	URL         call  `json:"url"`
	URLError    call  `json:"urlerror"`
	Exact       call  `json:"exact"`
	Complete    struct {
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
}

type want struct {
	URI  string            `json:"uri"`
	Name string            `json:"name"`
	Args map[string]string `json:"args"`
	Want string            `json:"want"`
}

func parseArgs(args []string) (options, error) {
	opts := options{era: "any"}
	for len(args) >= 2 {
		switch args[0] {
		case "--profile":
			if err := json.Unmarshal([]byte(args[1]), &opts.profile); err != nil {
				return opts, err
			}
		case "--checks":
			opts.checks = strings.Split(args[1], ",")
		case "--era":
			opts.era = args[1]
		case "--http":
			opts.http = args[1]
		case "--stdio":
			opts.stdio = args[1:]
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

type client struct {
	// Set at construction.
	opts options

	// Set by connect.
	session *mcp.ClientSession

	// Guarded by mu.
	mu         sync.Mutex
	updated    []string
	changed    []string
	logs       []string
	onProgress map[any]func(float64)
}

func newClient(opts options) *client {
	return &client{opts: opts, onProgress: map[any]func(float64){}}
}

func (c *client) run(name string) line {
	l := line{Check: name}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	if name == "connect" {
		ctx = context.Background() // the stdio child's life hangs on it
	}
	detail, same, err := c.check(ctx, name)
	l.MS = time.Since(start).Milliseconds()
	l.OK, l.Detail, l.Same = err == nil, detail, same
	if err != nil {
		l.Detail = describe(err)
	}
	return l
}

func describe(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		text = fmt.Sprintf("%s (code %d)", text, e.Code)
	}
	return text[:min(len(text), 400)]
}
