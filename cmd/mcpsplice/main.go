// Command mcpsplice connects any MCP client to any MCP server. See
// "mcpsplice --help".
package main

import (
	"context"
	"os"

	"github.com/mcpsplice/mcpsplice/internal/cli"
)

func main() {
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(int(cli.Main(context.Background(), os.Args[1:], streams)))
}
