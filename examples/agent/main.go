// Command agent is the loop of an agent. In the place of a model it has lines of
// the standard input: each names a tool, and its arguments, if any, as JSON.
//
//	go run ./examples/agent npx -y @modelcontextprotocol/server-everything
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: agent URL | COMMAND ARGS...")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, targetOf(os.Args[1:]), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func targetOf(args []string) client.Target {
	if strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://") {
		return client.URL(args[0])
	}
	return client.Command(args[0], args[1:]...)
}

// run offers the server's tools, and calls those that are decided on.
func run(ctx context.Context, target client.Target, decisions io.Reader, out io.Writer) error {
	c, err := client.Connect(ctx, target, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s\n", tool.Name, tool.Description)
	}
	for lines := bufio.NewScanner(decisions); lines.Scan(); {
		name, args, given := strings.Cut(lines.Text(), " ")
		if !given {
			args = "{}"
		}
		result, err := c.CallTool(ctx, name, mcp.JSON(args), nil)
		if err != nil {
			// It says whether the tool may have been executed all the same.
			fmt.Fprintln(out, "error:", err)
			continue
		}
		for _, block := range result.Content {
			if text, ok := block.(*mcp.Text); ok {
				fmt.Fprintln(out, text.Text)
			}
		}
	}
	return nil
}
