package checks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
		args, _ := filled(step.Args, text, fmt.Sprint(i)).(map[string]any)
		var err error
		if result, err = r.client.Call(ctx, step.Tool, args, ""); err != nil {
			return "", err
		}
	}
	if at := r.opts.Profile.Echo.At; at != nil {
		return textAt(result.Structured, at)
	}
	got, ok := strings.CutPrefix(result.Text, r.opts.Profile.Echo.Prefix)
	if !ok {
		return "", fmt.Errorf("%w %.80q", errEcho, result.Text)
	}
	return got, nil
}

// filled returns a value with what its texts leave open.
func filled(v any, text, i string) any {
	switch v := v.(type) {
	case string:
		if v == "$TEXT" {
			return text
		}
		return strings.Replace(v, "$I", i, 1)
	case []any:
		all := slices.Clone(v)
		for at := range all {
			all[at] = filled(all[at], text, i)
		}
		return all
	case map[string]any:
		all := maps.Clone(v)
		for name := range all {
			all[name] = filled(all[name], text, i)
		}
		return all
	}
	return v
}

// textAt returns the text in v that names and indices lead to.
func textAt(v any, path []any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return "", err
	}
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			name, _ := step.(string)
			v = at[name]
		case []any:
			if i, ok := step.(float64); ok && int(i) < len(at) {
				v = at[int(i)]
			}
		}
	}
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%w %.80q", errEcho, b)
	}
	return text, nil
}

var errEcho = errors.New("echo gave")

func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:16]
}

// eventually waits for a condition, a fifth of the time if the check is known to
// fail.
func (r *runner) eventually(d time.Duration, message string, condition func() (bool, error)) error {
	if r.brief {
		d /= 5
	}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok, err := condition(); ok || err != nil {
			return err
		}
	}
	return errors.New(message)
}
