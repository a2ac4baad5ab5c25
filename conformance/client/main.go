// Client is the client under test of the official conformance suite: one program
// for all of its scenarios that need no OAuth. It is built with the exported API
// only.
//
// The suite says in the environment which scenario and which revision it is, and
// appends the URL of its server to the arguments. What a scenario wants of the
// client is seen by that server; the program fails if the client did, or if it has
// not found out the server's era.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mcpsplice/mcpsplice/client"
	"github.com/mcpsplice/mcpsplice/mcp"
)

// maxRun ends the program before the suite gives it up, which would leave it
// running.
const maxRun = 20 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), maxRun)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "conformance client:", err)
		os.Exit(1)
	}
}

// run plays the scenario of the environment.
func run(ctx context.Context) error {
	if len(os.Args) < 2 {
		return fmt.Errorf("usage: %s URL, started by the conformance suite", os.Args[0])
	}
	name := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	s, ok := scenarios[name]
	if !ok {
		return fmt.Errorf("the scenario %q is not known", name)
	}
	opts := &client.Options{
		Info:   mcp.Implementation{Name: "mcpsplice-conformance", Version: "1.0.0"},
		Elicit: s.elicit, Sample: sample, Roots: roots,
	}
	if opts.Elicit == nil {
		opts.Elicit = fillIn
	}
	c, err := client.Connect(ctx, client.URL(os.Args[len(os.Args)-1]), opts)
	if err != nil {
		return err
	}
	if !s.dual {
		err = checkEra(c)
	}
	if err == nil {
		err = s.play(ctx, c)
	}
	if closing := c.Close(); err == nil {
		err = closing
	}
	return err
}

// checkEra returns an error unless the client has found out which era the run has.
// It is not told, since finding out is what clients do.
func checkEra(c *client.Client) error {
	revision := mcp.Revision(os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"))
	if era := c.Verdict().Era; era != revision.Era() {
		return fmt.Errorf("the server of revision %q was taken for a %s one", revision, era)
	}
	return nil
}
