package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/spf13/cobra"
)

type watchOptions struct {
	clientOptions
	uris  []string
	count int
}

const watchLong = `Print what a server tells without being asked: that its lists of tools, prompts
and resources change, and that the resources change that are named. It goes on
until it is interrupted, and connects again if the connection is lost; "resynced"
says that changes may have been missed meanwhile.` + targetHelp

func newWatchCmd(a *app) *cobra.Command {
	o := &watchOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:                   "watch [flags] TARGET [URI...]",
		Short:                 "Print what changes at a server",
		Long:                  watchLong,
		Example:               "  mcpsplice watch --json https://example.com/mcp file:///README.md",
		SuggestFor:            []string{"subscribe", "listen"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.uris, err = o.check(cmd, args); err != nil {
				return err
			}
			if o.count < 0 {
				return usagef("", "--count must not be negative")
			}
			return o.with(cmd.Context(), true, func(ctx context.Context, c *client.Client) error {
				return watchRun(ctx, o, c)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntVarP(&o.count, "count", "n", 0, "end after `N` changes")
	fs.Lookup("count").DefValue = "0"
	o.addFlags(cmd, "print each change as one line of JSON, as the server sent it")
	return cmd
}

func watchRun(ctx context.Context, o *watchOptions, c *client.Client) error {
	listening, cancel := context.WithTimeout(ctx, o.flags.timeout)
	s, err := c.Listen(listening, mcp.Filter{
		ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: o.uris,
	})
	cancel()
	if err != nil {
		return err
	}
	defer s.Close()
	granted := s.Filter()
	if granted.Empty() {
		return &mcp.CallError{
			Method: mcp.MethodListen, Kind: mcp.Unsupported, Outcome: mcp.Answered, Public: "the server tells of no changes",
		}
	}
	o.tellWatched(granted)
	for n := 1; ; n++ {
		event, err := s.Next(ctx)
		if err != nil {
			return err
		}
		if err := o.print(&event); err != nil {
			return err
		}
		if n == o.count {
			return nil
		}
	}
}

// tellWatched says what the server tells of, and what it does not.
func (o *watchOptions) tellWatched(f mcp.Filter) {
	var watched, not []string
	for _, kind := range []struct {
		granted bool
		name    string
	}{{f.ToolsListChanged, "tools"}, {f.PromptsListChanged, "prompts"}, {f.ResourcesListChanged, "resources"}} {
		if kind.granted {
			watched = append(watched, kind.name)
		}
	}
	for _, uri := range o.uris {
		if slices.Contains(f.ResourceSubscriptions, uri) {
			watched = append(watched, clean(uri))
		} else {
			not = append(not, clean(uri))
		}
	}
	if len(not) > 0 {
		o.notice("the server does not tell of changes of %s", strings.Join(not, ", "))
	}
	o.notice("watching %s", strings.Join(watched, ", "))
}

// print prints a change: what it is, and of which resource.
func (o *watchOptions) print(e *client.Event) error {
	if o.asJSON {
		raw, err := mcp.NewJSON(struct {
			Method string   `json:"method"`
			Params mcp.JSON `json:"params,omitzero"`
			Lost   int      `json:"lost,omitzero"`
		}{e.Method, e.Params, e.Lost})
		if err != nil {
			return err
		}
		return o.printJSON(raw)
	}
	var line strings.Builder
	if o.columns > 0 {
		line.WriteString(o.style.dim(time.Now().Format("15:04:05")) + "  ")
	}
	if e.Lost > 0 {
		fmt.Fprintf(&line, "(%d lost) ", e.Lost)
	}
	line.WriteString(clean(strings.TrimPrefix(e.Method, "notifications/")))
	if uri := e.URI(); uri != "" {
		line.WriteString("\t" + clean(uri))
	}
	_, err := io.WriteString(o.Out, line.String()+"\n")
	return err
}
