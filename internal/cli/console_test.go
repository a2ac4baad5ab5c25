package cli_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpsplice/mcpsplice/internal/cli"
)

func TestStatusLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown bytes.Buffer
		write, show, hold := cli.Terminal(&shown, 10)
		step := func(name, want string) {
			t.Helper()
			if got := shown.String(); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
			shown.Reset()
			time.Sleep(time.Second)
		}
		const away = "\r\x1b[K"
		show("one")
		step("the first", "one")
		show("one")
		step("the same", "")
		show("two")
		show("at once")
		step("two at once", away+"two")
		write("text\n")
		step("text", away+"text\n")
		show("much too long")
		step("a long one", "much too…")
		show("\x1b[2J\n")
		step("a hostile one", away+"\ufffd[2J ")
		hold(true)
		show("three")
		write("> ")
		step("while somebody types", away+"> ")
		hold(false)
		show("four")
		show("")
		step("the end", "four"+away)
	})
}

func TestPipesHaveNoStatusLine(t *testing.T) {
	var shown bytes.Buffer
	_, show, _ := cli.Terminal(&shown, 0)
	show("one")
	if shown.Len() > 0 {
		t.Errorf("it shows %q", shown.String())
	}
}
