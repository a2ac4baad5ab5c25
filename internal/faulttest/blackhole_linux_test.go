package faulttest_test

import (
	"net"
	"testing"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/faulttest"
)

func TestBlackHoleAnswersNobody(t *testing.T) {
	hole, err := faulttest.NewBlackHole()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := hole.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, err = net.DialTimeout("tcp", hole.Addr, 100*time.Millisecond)
	if e, ok := err.(net.Error); !ok || !e.Timeout() {
		t.Errorf("got %v", err)
	}
}
