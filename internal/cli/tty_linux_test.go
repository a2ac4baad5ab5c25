package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// openTerminal returns the two ends of a pseudo terminal of 80 columns: that of
// the person and that of the program.
func openTerminal() (person, program *os.File, err error) {
	person, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	modes, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, nil, err
	}
	// Or else Ctrl-C may also take away what the program writes after it.
	modes.Lflag |= unix.NOFLSH
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, modes); err != nil {
		return nil, nil, err
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		return nil, nil, err
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return person, program, err
}

// keys are what a person presses beside texts.
var keys = map[string]string{"^C": "\x03", "^D": "\x04", "^M": "\n"}

// tty runs a program at a terminal: tty CODE FILE PROGRAM ARGS... Each line of the
// file waits until the terminal shows a text ("< TEXT"), or types one ("> TEXT",
// or "^C" and the like); restart ends what start has started, and starts it
// again. What the terminal has shown is shown as stdout.
func tty(ts *testscript.TestScript, _ bool, args []string) {
	person, program, err := openTerminal()
	ts.Check(err)
	defer func() { _ = person.Close() }()
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TERM=xterm", "NO_COLOR="+ts.Getenv("NO_COLOR"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	ts.Check(program.Close())
	watchdog := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	screen := &screen{from: person}
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		line = strings.TrimSuffix(line, "\n")
		text := line[min(2, len(line)):]
		switch {
		case strings.HasPrefix(line, "<"):
			if !screen.waitFor(text) {
				ts.Fatalf("the terminal never shows %q, but\n%s", text, screen.shown.String())
			}
		case strings.HasPrefix(line, ">"):
			_, err := person.WriteString(text + "\n")
			ts.Check(err)
		case line == "restart":
			end(ts, false, nil)
			startAgain(ts)
		default:
			_, err := person.WriteString(keys[line])
			ts.Check(err)
		}
	}
	screen.waitFor("\x00") // which nothing prints
	err = cmd.Wait()
	_, _ = ts.Stdout().Write(bytes.ReplaceAll(screen.shown.Bytes(), []byte("\r\n"), []byte("\n")))
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s (%v), want %s\n%s", got, err, args[0], screen.shown.String())
	}
}

// A screen is what a terminal has shown.
type screen struct {
	from  *os.File
	shown bytes.Buffer
	seen  int // how much of it was waited for
}

// waitFor reads until the terminal shows a text after the last one. It reports
// false if the program ends before.
func (s *screen) waitFor(text string) bool {
	buf := make([]byte, 4096)
	for {
		if i := bytes.Index(s.shown.Bytes()[s.seen:], []byte(text)); i >= 0 {
			s.seen += i + len(text)
			return true
		}
		n, err := s.from.Read(buf)
		s.shown.Write(buf[:n])
		if err != nil { // EIO: nobody has the other end any more
			return bytes.Contains(s.shown.Bytes()[s.seen:], []byte(text))
		}
	}
}

func TestTerminal(t *testing.T) {
	commands := scriptCommands()
	commands["tty"] = tty
	params := scriptParams(filepath.Join("testdata", "terminal"))
	params.Cmds = commands
	testscript.Run(t, params)
}
