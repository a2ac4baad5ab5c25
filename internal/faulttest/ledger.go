package faulttest

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// A Ledger is a file that has a line for each call that was executed: the id in its
// arguments. It survives whoever writes to it, and several processes may.
type Ledger string

// Record adds a call.
func (l Ledger) Record(id string) error {
	f, err := os.OpenFile(string(l), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(id + "\n")
	return errors.Join(err, f.Close())
}

// Executed returns how often each call was executed.
func (l Ledger) Executed() (map[string]int, error) {
	text, err := os.ReadFile(string(l))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	executed := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		executed[strings.TrimSuffix(line, "\n")]++
	}
	return executed, nil
}
