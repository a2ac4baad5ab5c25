// Package proc reads the operating system's accounts of another process.
package proc

import "errors"

// ErrUnsupported is returned on systems whose accounts this package cannot
// read.
var ErrUnsupported = errors.New("process accounts are read on Linux only")

// Memory is the resident memory of a process in bytes.
type Memory struct {
	Resident int64
	Peak     int64
}
