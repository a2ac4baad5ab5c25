package gateway_test

import (
	"os"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// childVar has the test binary be a legacy server that speaks stdio.
const childVar = "GATEWAY_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		// Not os.Exit: under the race detector that takes a second.
		syscall.Exit(serveChild())
	}
	goleak.VerifyTestMain(m)
}
