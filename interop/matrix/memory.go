package main

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/mcpsplice/mcpsplice/transport"
)

// A memoryLink is one end of a [transport.Link] within this process.
type memoryLink struct {
	in, out chan []byte
	tap     transport.Tap // nil for none
	link    *memoryEnds
}

// memoryEnds is what both ends share.
type memoryEnds struct {
	once   sync.Once
	closed chan struct{}
}

// memoryLinks returns both ends of a link, the client's first. W sees what passes
// there.
func memoryLinks(w *wire) (near, far transport.Link) {
	const room = 64 // so that who writes does not wait for who reads
	there, back := make(chan []byte, room), make(chan []byte, room)
	ends := &memoryEnds{closed: make(chan struct{})}
	return &memoryLink{in: back, out: there, tap: w.tap, link: ends}, &memoryLink{in: there, out: back, link: ends}
}

// Read implements [transport.Link].
func (l *memoryLink) Read() ([]byte, error) {
	select {
	case message := <-l.in:
		if l.tap != nil {
			l.tap(false, message)
		}
		return message, nil
	case <-l.link.closed:
		return nil, io.EOF
	}
}

// Write implements [transport.Link].
func (l *memoryLink) Write(ctx context.Context, frame []byte, _ bool) error {
	if l.tap != nil {
		l.tap(true, frame)
	}
	select {
	case l.out <- bytes.Clone(frame):
		return nil
	case <-l.link.closed:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close implements [transport.Link].
func (l *memoryLink) Close() error {
	l.link.once.Do(func() { close(l.link.closed) })
	return nil
}
