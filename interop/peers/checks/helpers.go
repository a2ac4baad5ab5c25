package checks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

func together(n int, f func(i int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- f(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}

func (r *runner) echo(ctx context.Context, text string, i int) (string, error) {
	var result Result
	for _, step := range r.opts.Profile.Echo.Steps {
		args := maps.Clone(step.Args)
		for key, value := range args {
			if value == "$TEXT" {
				args[key] = text
			} else if s, ok := value.(string); ok {
				args[key] = strings.Replace(s, "$I", fmt.Sprint(i), 1)
			}
		}
		var err error
		if result, err = r.client.Call(ctx, step.Tool, args, ""); err != nil {
			return "", err
		}
	}
	got, ok := strings.CutPrefix(result.Text, r.opts.Profile.Echo.Prefix)
	if !ok {
		return "", fmt.Errorf("%w %.80q", errEcho, result.Text)
	}
	return got, nil
}

var errEcho = errors.New("echo gave")

func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:16]
}

func eventually(d time.Duration, message string, condition func() (bool, error)) error {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok, err := condition(); ok || err != nil {
			return err
		}
	}
	return errors.New(message)
}
