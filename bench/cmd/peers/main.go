// Command peers is the light contestants of the benchmarks, one a
// subcommand: what no server can beat on this machine.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/mcpsplice/mcpsplice/bench/internal/drive"
	"github.com/mcpsplice/mcpsplice/bench/internal/floor"
	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
	"github.com/mcpsplice/mcpsplice/bench/internal/serve"
	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

const usage = `usage:
  peers echo|floor|floor-typed stdio
  peers echo|floor|floor-typed|floor-listen http ADDRESS
  peers client KIND ...
  peers floor-bridge http ADDRESS COMMAND [ARGUMENT...]`

var errUsage = errors.New(usage)

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
	if len(args) < 2 {
		return errUsage
	}
	if args[0] == drive.Command {
		return drive.Main(args, drive.ConnectPlain)
	}
	name, transport, rest := args[0], args[1], args[2:]
	switch {
	case transport == "stdio" && len(rest) == 0:
		return serveStdio(name)
	case transport == "http" && name == "floor-bridge" && len(rest) > 1:
		return bridge(rest[0], rest[1:])
	case transport == "http" && len(rest) == 1:
		return serveHTTP(name, rest[0])
	}
	return errUsage
}

func serveStdio(name string) error {
	switch name {
	case "echo":
		return floor.EchoStdio(os.Stdin, os.Stdout)
	case "floor":
		return new(floor.Server).ServeStdio(os.Stdin, os.Stdout)
	case "floor-typed":
		return (&floor.Server{Typed: true}).ServeStdio(os.Stdin, os.Stdout)
	}
	return errUsage
}

func serveHTTP(name, addr string) error {
	switch name {
	case "echo":
		return serve.HTTP(addr, http.HandlerFunc(floor.EchoHTTP))
	case "floor":
		return serve.HTTP(addr, new(floor.Server))
	case "floor-typed":
		return serve.HTTP(addr, &floor.Server{Typed: true})
	case "floor-listen":
		return serve.HTTP(addr, floor.NewListen(wire.ResourceCount))
	}
	return errUsage
}

func bridge(addr string, command []string) error {
	b, err := floor.StartBridge(command)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- b.Run() }()
	go func() { ended <- serve.HTTP(addr, b) }()
	return <-ended
}
