package rounds_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if status, isChild := faulttest.RunChild(os.Stdin, os.Stdout, os.Stderr); isChild {
		syscall.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
