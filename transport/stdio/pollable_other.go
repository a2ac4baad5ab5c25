//go:build !unix

package stdio

import "os"

// pollable returns f itself.
func pollable(f *os.File, _ int) *os.File { return f }
