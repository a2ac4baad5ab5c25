package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/spf13/cobra"
)

type promptOptions struct {
	clientOptions
	name  string
	words []argument
	out   string
}

const promptLong = `Get a prompt, and print its messages, each after the role that says it.

Arguments are texts: NAME=TEXT, or NAME=@FILE for the text of a file.` + targetHelp

func newPromptCmd(a *app) *cobra.Command {
	o := &promptOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:                   "prompt [flags] TARGET NAME [ARGUMENT=TEXT...]",
		Short:                 "Get a prompt",
		Long:                  promptLong,
		Example:               "  mcpsplice prompt https://example.com/mcp review file=@main.go",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, err := o.check(cmd, args)
			if err != nil {
				return err
			}
			if len(rest) == 0 {
				return usagef(o.listed("prompts"), "no prompt is named")
			}
			if err := o.checkOut(o.out); err != nil {
				return err
			}
			o.name = rest[0]
			if o.words, err = o.parseTexts(rest[1:]); err != nil {
				return err
			}
			return o.with(cmd.Context(), false, func(ctx context.Context, c *client.Client) error {
				return promptRun(ctx, o, c)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	addOutFlag(cmd, &o.out)
	o.addRootFlag(cmd)
	o.addFlags(cmd, "print the result as the server sent it")
	return cmd
}

// parseTexts is parseArguments for arguments that can be nothing but texts.
func (a *app) parseTexts(words []string) ([]argument, error) {
	args, err := a.parseArguments(words)
	if err != nil {
		return nil, err
	}
	for i, arg := range args {
		if arg.isJSON {
			return nil, usagef("write "+arg.name+"=TEXT", "%s: only tools take JSON", arg.name)
		}
		if slices.ContainsFunc(args[:i], func(other argument) bool { return other.name == arg.name }) {
			return nil, usagef("", "%s is given twice", arg.name)
		}
	}
	return args, nil
}

func promptRun(ctx context.Context, o *promptOptions, c *client.Client) error {
	prompt, err := o.findPrompt(ctx, c, o.name)
	if err != nil {
		return err
	}
	params := mcp.GetPromptParams{Name: o.name}
	if params.Arguments, err = promptArguments(prompt, o.words); err != nil {
		return err
	}
	raw, err := c.Call(ctx, mcp.MethodGetPrompt, params, &client.CallOptions{Progress: o.progress()})
	if err != nil {
		return err
	}
	if o.asJSON {
		return o.printRaw(raw)
	}
	o.console.show("")
	var result mcp.GetPromptResult
	if err := raw.Decode(&result); err != nil {
		return badReply(mcp.MethodGetPrompt, err)
	}
	p := o.newPrinter(o.out, o.name)
	for i, m := range result.Messages {
		if i > 0 {
			if err := p.line(""); err != nil {
				return err
			}
		}
		if err := p.line("%s:", o.style.bold(clean(string(m.Role)))); err != nil {
			return err
		}
		if err := p.content(m.Content); err != nil {
			return err
		}
	}
	p.saver.sayIfNone()
	return nil
}

func (o *clientOptions) findPrompt(ctx context.Context, c *client.Client, name string) (*mcp.Prompt, error) {
	prompts, err := collect(c.Prompts(ctx))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(prompts))
	for i := range prompts {
		if prompts[i].Name == name {
			return &prompts[i], nil
		}
		names[i] = prompts[i].Name
	}
	return nil, &notFoundError{what: "prompt", name: name, hint: cmp.Or(didYouMean(name, names), o.listed("prompts"))}
}

// promptArguments returns the arguments for a prompt, and tells of those that it
// does not take and those that it needs.
func promptArguments(prompt *mcp.Prompt, words []argument) (map[string]string, error) {
	takes := "the prompt is " + promptSignature(prompt, false)
	names := make([]string, len(prompt.Arguments))
	for i, a := range prompt.Arguments {
		names[i] = a.Name
	}
	given := make(map[string]string, len(words))
	for _, w := range words {
		if !slices.Contains(names, w.name) {
			return nil, unknownArgument(prompt.Name, w.name, names, takes)
		}
		given[w.name] = w.text
	}
	var missing []string
	for _, a := range prompt.Arguments {
		if _, ok := given[a.Name]; a.Required && !ok {
			missing = append(missing, clean(a.Name))
		}
	}
	if len(missing) > 0 {
		return nil, usagef(takes, "%s needs %s", clean(prompt.Name), strings.Join(missing, ", "))
	}
	return given, nil
}
