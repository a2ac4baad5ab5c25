package stdio

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/transport"
)

// ServeOptions configure [Serve]. The zero value is usable.
type ServeOptions struct {
	transport.ServeOptions

	In, Out *os.File      // nil for os.Stdin and os.Stdout
	MaxLine int           // bytes; default jsonrpc.DefaultMaxLineListening
	Tap     transport.Tap // nil for none
}

// ErrServing says that the process's own standard streams are being served
// already.
var ErrServing = errors.New("standard input and output are served already")

var serving atomic.Bool

// Serve serves the client at the other end of this process's standard streams
// with handler, until the client closes them or ctx is done; see
// [transport.Serve]. While it runs nothing else may write to standard output:
// what is not a message breaks the framing. Log to standard error.
//
// The standard streams are closed when Serve returns. A second Serve of them
// fails with [ErrServing].
func Serve(ctx context.Context, handler mcp.Handler, opts *ServeOptions) error {
	var o ServeOptions
	if opts != nil {
		o = *opts
	}
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if (o.In == os.Stdin || o.Out == os.Stdout) && !serving.CompareAndSwap(false, true) {
		return ErrServing
	}
	if o.MaxLine <= 0 {
		o.MaxLine = jsonrpc.DefaultMaxLineListening
	}
	in, out := pollable(o.In, os.O_RDONLY), pollable(o.Out, os.O_WRONLY)
	widen(in)
	widen(out)
	link := transport.NewLineLink(in, out, func() error {
		return errors.Join(closeAll(in, o.In), closeAll(out, o.Out))
	}, transport.LineOptions{MaxLine: o.MaxLine, Tap: o.Tap})
	return transport.Serve(ctx, link, handler, o.ServeOptions)
}

// closeAll closes a stream and, if that was another one, what it was made from.
func closeAll(stream, original *os.File) error {
	err := stream.Close()
	if stream != original {
		err = errors.Join(err, original.Close())
	}
	return err
}
