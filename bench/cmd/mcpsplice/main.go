// Command mcpsplice is the benchmarks' contestant made with this project's
// library: one tool that gives its text back. The bridge is measured with the
// project's own binary instead.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

var errUsage = errors.New("usage: mcpsplice KIND stdio | mcpsplice KIND http ADDRESS, " +
	"with the KIND raw, typed, server, server-novalidation or listen; or crowd stdio")

func main() {
	err := memstats.ServeFromEnv()
	if err == nil {
		err = run(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == drive.Command {
		return drive.Main(args, connect)
	}
	if len(args) < 2 {
		return errUsage
	}
	if args[0] == "crowd" {
		return serveCrowd()
	}
	h := handlerOf(args[0])
	switch {
	case h == nil:
		return errUsage
	case len(args) == 2 && args[1] == "stdio":
		return serveStdio(h)
	case len(args) == 3 && args[1] == "http":
		return serveHTTP(args[2], h)
	}
	return errUsage
}

// handlerOf returns what is served as a kind of contestant, nil if there is no
// such kind.
func handlerOf(kind string) mcp.Handler {
	switch kind {
	case "raw":
		return handler(false)
	case "typed":
		return handler(true)
	case "server":
		return newServer(nil)
	case "server-novalidation":
		return newServer(&server.Options{SkipValidation: true})
	case "listen":
		return newListenServer()
	}
	return nil
}
