package process

import "testing"

// HideProc makes /proc look as if it were not mounted, until the test ends. It
// must be called before the first Start.
func HideProc(t *testing.T) {
	procDir = t.TempDir()
	t.Cleanup(func() { procDir = "/proc" })
}

// ParseStat returns group and session of a line of /proc/PID/stat.
func ParseStat(line string) (pgrp, session int, running bool) {
	m, ok := parseStat(42, []byte(line))
	return m.pgrp, m.session, ok
}
