package client_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if journal := os.Getenv(journalVar); journal != "" {
		beTheServer(journal)
		return
	}
	goleak.VerifyTestMain(m)
}
