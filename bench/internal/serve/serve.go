// Package serve is the HTTP server that all contestants have in common, so
// that only their handlers differ.
package serve

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/mcpsplice/mcpsplice/bench/internal/wire"
)

// HTTP serves h at [wire.Path] until the process ends.
func HTTP(addr string, h http.Handler) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(wire.Path, h)
	const headerTimeout = 10 * time.Second
	s := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	return s.Serve(l)
}
