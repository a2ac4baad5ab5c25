//go:build unix

package process

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	keeperName     = "mcpsplice-guardian" // argv[0] of a guardian process
	keeperFD       = 3
	keeperTermWait = 2 * time.Second
	keeperKillWait = time.Second
)

// init turns a process that was started as a guardian into one, and does not
// return then. Whoever starts this program under that name and with a pipe as
// descriptor 3 can have it signal what he may signal himself.
func init() {
	if len(os.Args) == 0 || os.Args[0] != keeperName {
		return
	}
	var st unix.Stat_t
	if unix.Fstat(keeperFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return
	}
	// A killall or a terminal that closes must not end the guardian before
	// the process that it outlives.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGTSTP,
		unix.SIGTTIN, unix.SIGTTOU, unix.SIGUSR1, unix.SIGUSR2)
	dropInherited()
	endGroups(readGroups(keeperFD))
	// The system call, without what a race detector or a coverage run would
	// do at the end of a program.
	syscall.Exit(0)
}

// readGroups reads "+id" and "-id" lines until the pipe ends, which is when our
// parent has, and returns the groups that are left. It reads by system call,
// since in an init function nothing else of the program should run.
func readGroups(fd int) []int {
	_ = unix.SetNonblock(fd, false)
	groups := make(map[int]bool)
	var rest []byte
	buf := make([]byte, 512)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			return slices.Sorted(maps.Keys(groups))
		}
		rest = applyLines(groups, append(rest, buf[:n]...))
	}
}

// applyLines applies the whole lines of b and returns the rest.
func applyLines(groups map[int]bool, b []byte) []byte {
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if !whole {
			return b
		}
		b = rest
		if len(line) < 2 {
			continue
		}
		id, err := strconv.Atoi(string(line[1:]))
		// 1 would make kill(2) mean every process, 0 our own group.
		if err != nil || id <= 1 {
			continue
		}
		switch line[0] {
		case '+':
			groups[id] = true
		case '-':
			delete(groups, id)
		}
	}
}

// endGroups ends the groups. A group that was once seen to be gone is never
// signalled again: its number is free.
func endGroups(ids []int) {
	ids = living(ids)
	for _, id := range ids {
		signalGroup(id, unix.SIGTERM)
	}
	ids = waitLiving(ids, keeperTermWait, nil)
	for _, id := range ids {
		signalGroup(id, unix.SIGKILL)
	}
	waitLiving(ids, keeperKillWait, func(id int) { signalGroup(id, unix.SIGKILL) })
}

func living(ids []int) []int {
	if len(ids) == 0 {
		return nil
	}
	live, _ := liveGroups(ids) // without /proc: until init has reaped them
	return slices.Sorted(maps.Keys(live))
}

// waitLiving waits until the groups are gone, and returns those that are not.
func waitLiving(ids []int, d time.Duration, each func(id int)) []int {
	over := time.NewTimer(d)
	defer over.Stop()
	pollUntil(over.C, func() bool {
		ids = living(ids)
		if each != nil {
			for _, id := range ids {
				each(id)
			}
		}
		return len(ids) == 0
	})
	return ids
}
