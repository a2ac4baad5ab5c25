//go:build !linux

package proc

import "time"

// CPU returns the processor time used so far by a process.
func CPU(int) (time.Duration, error) { return 0, ErrUnsupported }

// MemoryOf returns the resident memory of a process.
func MemoryOf(int) (Memory, error) { return Memory{}, ErrUnsupported }
