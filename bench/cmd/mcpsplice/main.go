// Command mcpsplice is the benchmarks' contestant made with this project's
// library: one tool that gives its text back. The bridge is measured with the
// project's own binary instead.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/mcpsplice/mcpsplice/bench/internal/memstats"
)

var errUsage = errors.New("usage: mcpsplice raw|typed stdio | mcpsplice raw|typed http ADDRESS")

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
	if len(args) < 2 || args[0] != "raw" && args[0] != "typed" {
		return errUsage
	}
	typed := args[0] == "typed"
	switch {
	case len(args) == 2 && args[1] == "stdio":
		return serveStdio(typed)
	case len(args) == 3 && args[1] == "http":
		return serveHTTP(args[2], typed)
	}
	return errUsage
}
