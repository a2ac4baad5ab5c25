package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"

	"github.com/spf13/cobra"
)

type listOptions struct {
	clientOptions
	tools, resources, templates, prompts, all bool
}

const listLong = `List what a server offers: its tools, if no flag says otherwise.

A tool is shown as NAME(ARGUMENTS) → RESULT, with ? at arguments that may be left
out. On a terminal its description stands beside it; in a pipe each line is one
feature, with tabs between the columns. With --json each page of a list is a line.` + targetHelp

func newListCmd(a *app) *cobra.Command {
	o := &listOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:                   "ls [flags] TARGET",
		Short:                 "List the tools, resources and prompts of a server",
		Long:                  listLong,
		Example:               "  mcpsplice ls --all https://example.com/mcp\n  mcpsplice ls -- npx -y @modelcontextprotocol/server-everything",
		SuggestFor:            []string{"list", "tools", "resources", "prompts"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, err := o.check(cmd, args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return usagef("", "one target was expected; what is %q?", rest[0])
			}
			return o.with(cmd.Context(), false, func(ctx context.Context, c *client.Client) error {
				return listRun(ctx, o, c)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&o.tools, "tools", false, "list the tools")
	fs.BoolVar(&o.resources, "resources", false, "list the resources")
	fs.BoolVar(&o.templates, "templates", false, "list the templates of resources")
	fs.BoolVar(&o.prompts, "prompts", false, "list the prompts")
	fs.BoolVarP(&o.all, "all", "a", false, "list them all")
	o.addFlags(cmd, "print the results as the server sent them, one page a line")
	return cmd
}

// A listing is one kind of feature, and how it is listed.
type listing struct {
	kind, plural string
	method       string
	entries      func(ctx context.Context, c *client.Client, s style) ([]entry, error)
}

// An entry is one line of a list.
type entry struct {
	columns     []string
	description string
}

func (o *listOptions) listings() []listing {
	tools := listing{"tool", "tools", mcp.MethodListTools, toolEntries}
	all := []struct {
		wanted bool
		listing
	}{
		{o.tools, tools},
		{o.resources, listing{"resource", "resources", mcp.MethodListResources, resourceEntries}},
		{o.templates, listing{"template", "templates", mcp.MethodListResourceTemplates, templateEntries}},
		{o.prompts, listing{"prompt", "prompts", mcp.MethodListPrompts, promptEntries}},
	}
	var wanted []listing
	for _, l := range all {
		if l.wanted || o.all {
			wanted = append(wanted, l.listing)
		}
	}
	if wanted == nil {
		return []listing{tools}
	}
	return wanted
}

func listRun(ctx context.Context, o *listOptions, c *client.Client) error {
	listings := o.listings()
	for i, l := range listings {
		if o.asJSON {
			if err := o.printPages(ctx, c, l.method); err != nil {
				return err
			}
			continue
		}
		entries, err := l.entries(ctx, c, o.style)
		if err != nil {
			return err
		}
		if err := o.print(l, entries, i, len(listings)); err != nil {
			return err
		}
	}
	return nil
}

// printPages prints the pages of a list as they came. A server without such a list
// has no pages.
func (o *listOptions) printPages(ctx context.Context, c *client.Client, method string) error {
	first := true
	for page, err := range c.Pages(ctx, method) {
		if first && lacks(err) {
			return nil
		}
		if err == nil {
			err = o.printRaw(page)
		}
		if err != nil {
			return err
		}
		first = false
	}
	return nil
}

// print prints the i-th of n lists.
func (o *listOptions) print(l listing, entries []entry, i, n int) error {
	var b strings.Builder
	switch {
	case len(entries) == 0 && n == 1:
		o.notice("the server has no %s", l.plural)
	case o.columns == 0:
		for _, e := range entries {
			if n > 1 {
				b.WriteString(l.kind + "\t")
			}
			b.WriteString(strings.Join(append(e.columns, e.description), "\t") + "\n")
		}
	case len(entries) > 0:
		if n > 1 {
			if i > 0 {
				b.WriteString("\n")
			}
			b.WriteString(o.style.dim(strings.ToUpper(l.plural)) + "\n")
		}
		writeEntries(&b, entries, o.columns, o.style)
	}
	_, err := o.Out.WriteString(b.String())
	return err
}

// Bounds of a table on a terminal.
const (
	minRight     = 24 // columns of the descriptions
	maxDescribed = 3  // lines of one description
)

// writeEntries writes a table whose right column is wrapped. What is wider than
// two fifths of the terminal has its description below it.
func writeEntries(b *strings.Builder, entries []entry, columns int, s style) {
	most := columns * 2 / 5
	var widths []int
	for _, e := range entries {
		for i, text := range e.columns {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if w := width(text); w <= most {
				widths[i] = max(widths[i], w)
			}
		}
	}
	left := 0
	for _, w := range widths {
		left += w + 2
	}
	left = min(left, columns-minRight)
	for _, e := range entries {
		head := ""
		for i, text := range e.columns {
			head += text + strings.Repeat(" ", max(widths[i]-width(text), 0)+2)
		}
		lines := wrap(e.description, max(columns-left-1, minRight), maxDescribed)
		if len(lines) == 0 {
			b.WriteString(strings.TrimRight(head, " ") + "\n")
			continue
		}
		indent := "\n" + strings.Repeat(" ", max(left, 0))
		if width(head) > left {
			head = strings.TrimRight(head, " ") + indent
		}
		for i, line := range lines {
			lines[i] = s.dim(line)
		}
		b.WriteString(head + strings.Join(lines, indent) + "\n")
	}
}

func toolEntries(ctx context.Context, c *client.Client, s style) ([]entry, error) {
	tools, err := collect(c.Tools(ctx))
	entries := make([]entry, len(tools))
	for i := range tools {
		t := &tools[i]
		entries[i] = entry{[]string{signatureOf(t, s)}, describe(t.Description, t.Title)}
	}
	return entries, err
}

func promptEntries(ctx context.Context, c *client.Client, s style) ([]entry, error) {
	prompts, err := collect(c.Prompts(ctx))
	entries := make([]entry, len(prompts))
	for i := range prompts {
		p := &prompts[i]
		entries[i] = entry{[]string{promptSignature(p, s)}, describe(p.Description, p.Title)}
	}
	return entries, err
}

func resourceEntries(ctx context.Context, c *client.Client, s style) ([]entry, error) {
	resources, err := collect(c.Resources(ctx))
	entries := make([]entry, len(resources))
	for i, r := range resources {
		kind := clean(r.MIMEType)
		if r.Size != nil {
			kind = strings.TrimSpace(kind + fmt.Sprintf(" (%s)", size(int(*r.Size))))
		}
		entries[i] = entry{[]string{s.bold(clean(r.URI)), kind}, describe(r.Description, r.Title, r.Name)}
	}
	return entries, err
}

func templateEntries(ctx context.Context, c *client.Client, s style) ([]entry, error) {
	templates, err := collect(c.ResourceTemplates(ctx))
	entries := make([]entry, len(templates))
	for i, t := range templates {
		entries[i] = entry{[]string{s.bold(clean(t.URITemplate)), clean(t.MIMEType)}, describe(t.Description, t.Title, t.Name)}
	}
	return entries, err
}

// describe returns the first text that there is, in one line.
func describe(texts ...string) string {
	for _, text := range texts {
		if words := strings.Fields(clean(text)); len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return ""
}
