package client_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if status, isChild := faulttest.RunChild(os.Stdin, os.Stdout, os.Stderr); isChild {
		// Not os.Exit: under the race detector that takes a second.
		syscall.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
