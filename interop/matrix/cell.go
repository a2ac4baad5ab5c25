package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// patience bounds what only a hang would miss.
const patience = 30 * time.Second

// A cell is a client in front of a bridge in front of a server.
type cell struct {
	clientSide, serverSide side

	stage  *stage
	pool   *transport.Pool
	server *wire // of the bridge's connections to the server
	facing reach // the bridge, by its clients
	client *wire // of the cell's own one

	user *user
	*client.Client
}

// openCell makes a cell, and connects its client.
func openCell(ctx context.Context, clientSide, serverSide side) (*cell, error) {
	c := &cell{clientSide: clientSide, serverSide: serverSide, stage: newStage()}
	c.server, c.client = newWire(serverSide), newWire(clientSide)
	reachServer, err := c.openServer()
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	behind := reachServer(c.server)
	// As `mcpsplice serve` has it: the server's era is found out, and the client's
	// preferred.
	c.pool = transport.NewPool(func(ctx context.Context, meta *mcp.Metadata) (edge, error) {
		return behind.Dial(ctx, dialOptions{Prefer: meta.Revision.Era(), Client: meta.Client, Capabilities: meta.Capabilities})
	}, transport.PoolOptions{})
	if c.facing, err = clientSide.open(c.stage, c.pool, mcp.NoEra); err != nil {
		return nil, errors.Join(err, c.close())
	}
	c.user = newUser(clientSide, clientName)
	if c.Client, err = client.Connect(ctx, c.facing(c.client), c.user.options()); err != nil {
		return nil, errors.Join(fmt.Errorf("connecting: %w", err), c.close())
	}
	return c, nil
}

// openServer makes the server, which speaks nothing but its side.
func (c *cell) openServer() (reach, error) {
	if c.serverSide.process {
		return openChild(c.serverSide.era)
	}
	return c.serverSide.open(c.stage, newFixture(c.serverSide.era), c.serverSide.era)
}

// close ends all that belongs to the cell.
func (c *cell) close() error {
	var errs []error
	if c.Client != nil {
		errs = append(errs, c.Client.Close())
	}
	if c.pool != nil {
		errs = append(errs, c.pool.Close())
	}
	return errors.Join(append(errs, c.stage.end())...)
}

// call calls a tool and returns its text. That the tool fails is an error.
func (c *cell) call(ctx context.Context, name string, arguments any) (string, error) {
	return c.callWith(ctx, name, arguments, nil)
}

func (c *cell) callWith(ctx context.Context, name string, arguments any, opts *client.CallOptions) (string, error) {
	return textOf(c.CallTool(ctx, name, arguments, opts))
}

// textOf returns the text of a tool that has not failed.
func textOf(result *mcp.CallToolResult, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text, err := onlyText(result.Content)
	if err == nil && result.Failed() {
		err = fmt.Errorf("the tool failed: %s", text)
	}
	return text, err
}

func onlyText(content mcp.Contents) (string, error) {
	if len(content) == 1 {
		if text, ok := content[0].(*mcp.Text); ok {
			return text.Text, nil
		}
	}
	return "", fmt.Errorf("got %d blocks of content, want one text", len(content))
}
