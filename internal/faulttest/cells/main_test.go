package cells_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/mcpsplice/mcpsplice/internal/faulttest/cells"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if status, isServer := cells.RunServer(os.Stdin, os.Stdout, os.Stderr); isServer {
		syscall.Exit(status)
	}
	goleak.VerifyTestMain(m)
}
