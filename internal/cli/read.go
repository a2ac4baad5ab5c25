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

type readOptions struct {
	clientOptions
	uri string
	out string
}

const readLong = `Read a resource, and print it, or save it with --out.

Text is printed as it is. Of binary content one line says what it is.` + targetHelp

func newReadCmd(a *app) *cobra.Command {
	o := &readOptions{clientOptions: clientOptions{app: a}}
	cmd := &cobra.Command{
		Use:                   "read [flags] TARGET URI",
		Short:                 "Read a resource",
		Long:                  readLong,
		Example:               "  mcpsplice read https://example.com/mcp file:///README.md",
		SuggestFor:            []string{"get", "cat", "resource"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, err := o.check(cmd, args)
			if err != nil {
				return err
			}
			if len(rest) == 0 {
				return usagef(o.listed("resources"), "no resource is named")
			}
			if len(rest) > 1 {
				return usagef(o.listed("resources"), "one resource was expected; what is %q?", rest[1])
			}
			if err := o.checkOut(o.out); err != nil {
				return err
			}
			o.uri = rest[0]
			return o.with(cmd.Context(), false, func(ctx context.Context, c *client.Client) error {
				return readRun(ctx, o, c)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	addOutFlag(cmd, &o.out)
	fs.Lookup("out").Usage = "save the content to `FILE`, or under a name of its own into a\ndirectory (which ends in /, or exists); - stands for stdout"
	o.addRootFlag(cmd)
	o.addFlags(cmd, "print the result as the server sent it")
	return cmd
}

func readRun(ctx context.Context, o *readOptions, c *client.Client) error {
	raw, err := c.Call(ctx, mcp.MethodReadResource, mcp.ReadResourceParams{URI: o.uri}, &client.CallOptions{Progress: o.progress()})
	switch {
	case noSuchResource(err):
		return &notFoundError{what: "resource", name: o.uri, hint: cmp.Or(resourceHint(ctx, c, o.uri), o.listed("resources")), err: err}
	case err != nil:
		return err
	case o.asJSON:
		return o.printRaw(raw)
	}
	o.console.show("")
	var result mcp.ReadResourceResult
	if err := raw.Decode(&result); err != nil {
		return badReply(mcp.MethodReadResource, err)
	}
	return o.print(&result)
}

func (o *readOptions) print(result *mcp.ReadResourceResult) error {
	p := o.newPrinter(o.out, "resource")
	for i := range result.Contents {
		r := &result.Contents[i]
		var err error
		if r.Text != nil && o.out != "" {
			err = p.saver.save(r.MIMEType, []byte(*r.Text), r.URI)
		} else {
			err = p.resource(r)
		}
		if err != nil {
			return err
		}
	}
	if len(result.Contents) == 0 {
		o.notice("the resource is empty")
	}
	return nil
}

// noSuchResource reports whether a server does not know a resource: by a code of
// its own in legacy revisions, as an invalid parameter in modern ones, or because
// it has no resources.
func noSuchResource(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (e.Code == jsonrpc.CodeResourceNotFound || e.Code == jsonrpc.CodeInvalidParams || lacks(err))
}

// resourceHint names the resources that may have been meant.
func resourceHint(ctx context.Context, c *client.Client, uri string) string {
	resources, err := collect(c.Resources(ctx))
	if err != nil {
		return "" // a hint is not worth a second error
	}
	if len(resources) == 0 {
		return "" // it may have templates
	}
	uris := make([]string, len(resources))
	for i, r := range resources {
		uris[i] = r.URI
	}
	return didYouMean(uri, uris)
}
