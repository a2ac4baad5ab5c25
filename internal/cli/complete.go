package cli

import (
	"context"
	"io"
	"strings"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/spf13/cobra"
)

type completeOptions struct {
	clientOptions
	params mcp.CompleteParams
}

const completeLong = `Ask a server which values an argument may have that begins with VALUE, and print
them, one a line.

The last ARGUMENT is completed; those before it are told as settled, since what
it may be can depend on them. KIND is prompt or resource: the argument is one of
the prompt NAME, or a variable of the resource template NAME.` + targetHelp

func newCompleteCmd(a *app) *cobra.Command {
	o := &completeOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:                   "complete [flags] TARGET KIND NAME ARGUMENT=VALUE...",
		Short:                 "Complete an argument of a prompt or of a resource template",
		Long:                  completeLong,
		Example:               "  mcpsplice complete https://example.com/mcp prompt review language=py",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, err := o.check(cmd, args)
			if err != nil {
				return err
			}
			if err := o.read(rest); err != nil {
				return err
			}
			return o.with(cmd.Context(), false, func(ctx context.Context, c *client.Client) error {
				return completeRun(ctx, o, c)
			})
		},
	}
	cmd.Flags().SortFlags = false
	o.addFlags(cmd, "print the result as the server sent it")
	return cmd
}

// read reads KIND NAME ARGUMENT=VALUE...
func (o *completeOptions) read(args []string) error {
	const example = "as in mcpsplice complete TARGET prompt review language=py"
	if len(args) < 3 {
		return usagef(example, "a kind, a name and an argument are needed")
	}
	kind, name := args[0], args[1]
	switch kind {
	case "prompt":
		o.params.Ref = mcp.Reference{Type: mcp.RefPrompt, Name: name}
	case "resource":
		o.params.Ref = mcp.Reference{Type: mcp.RefResource, URI: name}
	default:
		return usagef(example, "what is completed must be of a prompt or a resource, not of a %q", kind)
	}
	words, err := o.parseTexts(args[2:])
	if err != nil {
		return err
	}
	last := len(words) - 1
	o.params.Argument = mcp.CompleteArgument{Name: words[last].name, Value: words[last].text}
	if last > 0 {
		settled := make(map[string]string, last)
		for _, w := range words[:last] {
			settled[w.name] = w.text
		}
		o.params.Context = &mcp.CompleteContext{Arguments: settled}
	}
	return nil
}

func completeRun(ctx context.Context, o *completeOptions, c *client.Client) error {
	if err := o.checkReference(ctx, c); err != nil {
		return err
	}
	raw, err := c.Call(ctx, mcp.MethodComplete, o.params, nil)
	if err != nil {
		return err
	}
	if o.asJSON {
		return o.printRaw(raw)
	}
	var result mcp.CompleteResult
	if err := raw.Decode(&result); err != nil {
		return badReply(mcp.MethodComplete, err)
	}
	var lines strings.Builder
	for _, value := range result.Completion.Values {
		lines.WriteString(clean(value) + "\n")
	}
	if _, err := io.WriteString(o.Out, lines.String()); err != nil {
		return err
	}
	o.tellMore(&result.Completion)
	return nil
}

// checkReference tells of a template, or of a prompt or its argument, that there is
// not.
func (o *completeOptions) checkReference(ctx context.Context, c *client.Client) error {
	if o.params.Ref.Type == mcp.RefResource {
		return o.checkTemplate(ctx, c)
	}
	prompt, err := o.findPrompt(ctx, c, o.params.Ref.Name)
	if err != nil {
		return err
	}
	var names []string
	for _, a := range prompt.Arguments {
		if a.Name == o.params.Argument.Name {
			return nil
		}
		names = append(names, a.Name)
	}
	return unknownArgument(prompt.Name, o.params.Argument.Name, names, "the prompt is "+promptSignature(prompt, false))
}

func (o *completeOptions) checkTemplate(ctx context.Context, c *client.Client) error {
	templates, err := collect(c.ResourceTemplates(ctx))
	if err != nil {
		return err
	}
	var names []string
	for _, t := range templates {
		if t.URITemplate == o.params.Ref.URI {
			return nil
		}
		names = append(names, t.URITemplate)
	}
	return &notFoundError{what: "resource template", name: o.params.Ref.URI, hint: didYouMean(o.params.Ref.URI, names)}
}

// tellMore says that there are more values than those that were printed.
func (o *completeOptions) tellMore(c *mcp.Completion) {
	switch {
	case c.Total != nil && *c.Total > len(c.Values):
		o.notice("these are %d of %d values", len(c.Values), *c.Total)
	case c.HasMore != nil && *c.HasMore:
		o.notice("there are more values than these")
	case len(c.Values) == 0:
		o.notice("nothing begins so")
	}
}
