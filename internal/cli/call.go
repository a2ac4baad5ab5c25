package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/spf13/cobra"
)

type callOptions struct {
	clientOptions
	tool      string
	words     []argument
	object    jsonrpc.Value // what --args says
	args      string
	out       string
	unchecked bool
}

const callLong = `Call a tool, and print what it gives.

Arguments are given as
  NAME=TEXT     converted as the tool's schema says: a number, true or false, one of
                several values; a text stays one. Arrays are given as JSON, or
                element by element: tag=a tag=b
  NAME:=JSON    as it is: numbers keep all their digits
  NAME=@FILE    the text of a file, NAME:=@FILE the JSON of one; @- is stdin
or as one JSON object by --args, which the others add to. What a tool does not
take and what it needs is told before it is called.

Text goes to stdout, pictures and other binary content to files with --out. What
a tool says that has failed goes to stderr, and the exit code is 5. If the
server asks something, the question is put at the terminal, or declined if there
is none. Ctrl-C cancels the call.` + targetHelp

const callExample = `  mcpsplice call https://example.com/mcp forecast city=Bern days=3
  mcpsplice call echo message=hello -- npx -y @modelcontextprotocol/server-everything`

func newCallCmd(a *app) *cobra.Command {
	o := &callOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:                   "call [flags] TARGET TOOL [NAME=VALUE...]",
		Short:                 "Call a tool",
		Long:                  callLong,
		Example:               callExample,
		SuggestFor:            []string{"run", "exec", "invoke", "tool"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args); err != nil {
				return err
			}
			return o.with(cmd.Context(), false, func(ctx context.Context, c *client.Client) error {
				return callRun(ctx, o, c)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.args, "args", "", "the arguments as a `JSON` object; - reads it from stdin")
	addOutFlag(cmd, &o.out)
	fs.BoolVar(&o.unchecked, "unchecked", false, "send arguments that do not fit the tool's schema, too")
	o.addRootFlag(cmd)
	o.addFlags(cmd, "print the result as the server sent it")
	return cmd
}

func (o *callOptions) check(cmd *cobra.Command, args []string) error {
	args, err := o.clientOptions.check(cmd, args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef(o.listed("tools"), "no tool is named")
	}
	if err := o.checkOut(o.out); err != nil {
		return err
	}
	o.tool = args[0]
	if o.object, err = o.parseObject(o.args); err != nil {
		return err
	}
	o.words, err = o.parseArguments(args[1:])
	return err
}

func callRun(ctx context.Context, o *callOptions, c *client.Client) error {
	tool, err := o.findTool(ctx, c)
	if err != nil {
		return err
	}
	input := newSchema(tool.InputSchema)
	arguments, err := merge(&o.object, o.words, input, o.unchecked)
	if err != nil {
		return err
	}
	if !o.unchecked {
		if err := checkArguments(tool, &arguments, input); err != nil {
			return err
		}
	}
	params := mcp.CallToolParams{Name: tool.Name, Arguments: mcp.JSON(arguments.Raw())}
	raw, err := c.Call(ctx, mcp.MethodCallTool, params, &client.CallOptions{Progress: o.progress()})
	if err != nil {
		return err
	}
	o.console.show("")
	return o.show(raw)
}

// findTool returns the tool that is to be called.
func (o *callOptions) findTool(ctx context.Context, c *client.Client) (*mcp.Tool, error) {
	tools, err := collect(c.Tools(ctx))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(tools))
	for i := range tools {
		if tools[i].Name == o.tool {
			return &tools[i], nil
		}
		names[i] = tools[i].Name
	}
	return nil, &notFoundError{what: "tool", name: o.tool, hint: cmp.Or(didYouMean(o.tool, names), o.listed("tools"))}
}

// show prints the result of a tool, and returns whether that has failed as an
// error.
func (o *callOptions) show(raw mcp.Result) error {
	if o.asJSON {
		if err := o.printRaw(raw); err != nil {
			return err
		}
	}
	var result mcp.CallToolResult
	if err := raw.Decode(&result); err != nil {
		return badReply(mcp.MethodCallTool, err)
	}
	failed := &toolError{tool: o.tool}
	if o.asJSON {
		failed.text = firstText(result.Content)
		return failedOr(result.Failed(), failed)
	}
	p := o.newPrinter(o.out, o.tool)
	if result.Failed() {
		p.toStderr()
	}
	return errors.Join(p.toolResult(&result), failedOr(result.Failed(), failed))
}

// failedOr returns err if something has failed.
func failedOr(failed bool, err error) error {
	if failed {
		return err
	}
	return nil
}

func badReply(method string, err error) error {
	return &mcp.CallError{Method: method, Kind: mcp.BadReply, Outcome: mcp.Answered, Err: err}
}

// printRaw prints a result as it came, in one line.
func (a *app) printRaw(result mcp.Result) error { return a.printJSON(result.AppendTo(nil)) }
