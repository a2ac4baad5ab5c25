// Command answer calls a tool that asks the user, and asks on the terminal.
//
//	go run ./examples/http-server &
//	go run ./examples/answer http://127.0.0.1:8421/mcp reserve '{"people":4}'
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: answer URL TOOL ARGUMENTS")
		os.Exit(2)
	}
	user := &user{bufio.NewScanner(os.Stdin), os.Stdout}
	if err := run(context.Background(), client.URL(os.Args[1]), os.Args[2], os.Args[3], user); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A user sits at a terminal.
type user struct {
	in  *bufio.Scanner
	out io.Writer
}

// ask has the user fill in a form. What is left out gets its default.
func (u *user) ask(_ context.Context, form *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var schema struct {
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
	}
	if err := form.RequestedSchema.Decode(&schema); err != nil {
		return nil, err
	}
	fmt.Fprintln(u.out, form.Message)
	answers := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		fmt.Fprintf(u.out, "%s (%s): ", name, schema.Properties[name].Description)
		if !u.in.Scan() {
			return &mcp.ElicitResult{Action: mcp.Cancel}, nil
		}
		if text := u.in.Text(); text != "" {
			answers[name] = text
		}
	}
	content, err := mcp.NewJSON(answers)
	return &mcp.ElicitResult{Action: mcp.Accept, Content: content}, err
}

func run(ctx context.Context, target client.Target, tool, args string, u *user) error {
	c, err := client.Connect(ctx, target, &client.Options{Elicit: u.ask})
	if err != nil {
		return err
	}
	defer c.Close()
	result, err := c.CallTool(ctx, tool, mcp.JSON(args), nil)
	if err != nil {
		return err
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcp.Text); ok {
			fmt.Fprintln(u.out, text.Text)
		}
	}
	return nil
}
