package checks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A runner runs the checks over one connection.
type runner struct {
	// Set at construction.
	opts   Options
	seen   *Seen
	client Client

	// Set by connect.
	connected bool
	modern    bool

	// Set by run: the check is known to fail.
	brief bool
}

// check runs one check. The second result, if any, has to be the same through
// a bridge as without one.
func (r *runner) check(ctx context.Context, name string) (detail, same string, err error) {
	if name != "connect" && !r.connected {
		return "", "", errors.New("not connected")
	}
	p := r.opts.Profile
	switch name {
	case "connect":
		detail, err = r.connect(ctx)
	case "list":
		return r.list(ctx)
	case "call":
		err = r.call(ctx)
	case "structured":
		err = r.structured(ctx)
	case "error":
		return r.fail(ctx)
	case "read":
		return r.read(ctx)
	case "prompt":
		same, err = r.prompt(ctx)
	case "complete":
		err = r.complete(ctx)
	case "progress":
		detail, err = r.progress(ctx)
	case "cancel":
		detail, err = r.cancel(ctx)
	case "log":
		detail, err = r.log(ctx)
	case "updated":
		err = r.resourceUpdated(ctx)
	case "listchanged":
		err = r.listChanged(ctx)
	case "elicit":
		err = r.question(ctx, p.Elicit)
	case "decline":
		err = r.decline(ctx)
	case "sealed":
		err = r.question(ctx, p.Sealed)
	case "sample":
		err = r.question(ctx, p.Sample)
	case "roots":
		err = r.question(ctx, p.Roots)
	case "url":
		err = r.question(ctx, p.URL)
	case "urlerror":
		err = r.urlError(ctx)
	case "exact":
		err = r.exact(ctx)
	case "big":
		err = r.big(ctx)
	case "meet":
		err = r.meet(ctx)
	case "many":
		err = r.many(ctx)
	case "heal":
		detail, err = r.heal(ctx)
	default:
		err = errors.New("no such check")
	}
	return detail, same, err
}

func (r *runner) connect(ctx context.Context) (string, error) {
	server, version, err := r.client.Connect(ctx)
	if err != nil {
		return "", err
	}
	r.connected, r.modern = true, version >= Modern
	if server != r.opts.Profile.Server {
		return "", fmt.Errorf("server is %s, want %s", server, r.opts.Profile.Server)
	}
	if era := r.opts.era; era != "any" && r.modern != (era == "modern") {
		return "", fmt.Errorf("negotiated %s, want the %s era", version, era)
	}
	return server + " " + version, nil
}

func (r *runner) list(ctx context.Context) (detail, same string, err error) {
	names, all, err := r.client.Tools(ctx)
	if err != nil {
		return "", "", err
	}
	for _, want := range r.opts.Profile.Tools {
		if !slices.Contains(names, want) {
			return "", "", fmt.Errorf("no tool %s in %v", want, names)
		}
	}
	return fmt.Sprintf("%d tools", len(names)), digest(all), nil
}

func (r *runner) call(ctx context.Context) error {
	text := "Grüezi \"\\\" \n\t\u2028 🎈 \u0000 </script>"
	got, err := r.echo(ctx, text, 0)
	if err == nil && got != text {
		err = fmt.Errorf("%w %q", errEcho, got)
	}
	return err
}

func (r *runner) structured(ctx context.Context) error {
	p := r.opts.Profile.Structured
	result, err := r.client.Call(ctx, p.Tool, p.Args, "")
	if err != nil {
		return err
	}
	b, err := json.Marshal(result.Structured)
	if err != nil {
		return err
	}
	var structured, text map[string]any
	if err := json.Unmarshal(b, &structured); err != nil || !reflect.DeepEqual(structured, p.Want) {
		return fmt.Errorf("the structured content is %.300s", b)
	}
	if err := json.Unmarshal([]byte(result.Text), &text); err != nil || !reflect.DeepEqual(text, p.Want) {
		return fmt.Errorf("the text is %.300q", result.Text)
	}
	return nil
}

func (r *runner) fail(ctx context.Context) (detail, same string, err error) {
	calls := []call{{Tool: "no-such-tool"}}
	if f := r.opts.Profile.Fail; f != nil {
		calls = append(calls, *f)
	}
	var got []string
	for _, failing := range calls {
		result, err := r.client.Call(ctx, failing.Tool, failing.Args, "")
		text, code, refused := r.client.Refused(err)
		switch {
		case refused:
			got = append(got, fmt.Sprintf("error %d %s", code, text))
		case err != nil:
			return "", "", err
		case !result.Failed:
			return "", "", fmt.Errorf("%s did not fail", failing.Tool)
		default:
			got = append(got, "isError "+result.Text)
		}
	}
	all := strings.Join(got, "; ")
	return all, all, r.call(ctx)
}

func (r *runner) read(ctx context.Context) (detail, same string, err error) {
	p := r.opts.Profile.Read
	uris, err := r.client.Resources(ctx)
	if err != nil {
		return "", "", err
	}
	if !slices.Contains(uris, p.URI) {
		return "", "", fmt.Errorf("%s is not listed", p.URI)
	}
	text, contents, err := r.client.Read(ctx, p.URI)
	if err != nil {
		return "", "", err
	}
	if !strings.Contains(text, p.Want) {
		return "", "", fmt.Errorf("read gave %.80q", text)
	}
	return fmt.Sprintf("%d bytes", len(text)), digest(contents), nil
}

func (r *runner) prompt(ctx context.Context) (same string, err error) {
	p := r.opts.Profile.Prompt
	names, err := r.client.Prompts(ctx)
	if err != nil {
		return "", err
	}
	if !slices.Contains(names, p.Name) {
		return "", fmt.Errorf("%s is not listed", p.Name)
	}
	messages, err := r.client.Prompt(ctx, p.Name, p.Args)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(messages)
	if err == nil && !strings.Contains(string(b), p.Want) {
		err = fmt.Errorf("prompt gave %s", b)
	}
	return digest(messages), err
}

func (r *runner) complete(ctx context.Context) error {
	p := r.opts.Profile.Complete
	values, err := r.client.Complete(ctx, p.Prompt, p.Argument, p.Value)
	if err == nil && !slices.Equal(values, p.Want) {
		err = fmt.Errorf("completion gave %v", values)
	}
	return err
}

// watched calls a tool with a function that sees its progress, and that runs
// under the lock of what is seen.
func (r *runner) watched(ctx context.Context, p call, onProgress func(float64)) (Result, error) {
	token := "progress-of-" + p.Tool
	r.seen.mu.Lock()
	r.seen.onProgress[token] = onProgress
	r.seen.mu.Unlock()
	return r.client.Call(ctx, p.Tool, p.Args, token)
}

// progress calls again if little came: the SDKs drop progress that they read in
// one piece with the result, as happens on a busy machine.
func (r *runner) progress(ctx context.Context) (string, error) {
	var steps []float64
	came := func() []float64 {
		r.seen.mu.Lock()
		defer r.seen.mu.Unlock()
		return slices.Clone(steps)
	}
	var before []float64
	for range 3 {
		before, steps = nil, nil
		_, err := r.watched(ctx, r.opts.Profile.Progress, func(step float64) { steps = append(steps, step) })
		if err != nil {
			return "", err
		}
		if before = came(); len(before) >= 2 {
			break
		}
	}
	if len(before) < 2 {
		return "", fmt.Errorf("%d progress notifications before the result: %v", len(before), before)
	}
	for i := 1; i < len(before); i++ {
		if before[i] <= before[i-1] {
			return "", fmt.Errorf("progress not increasing: %v", before)
		}
	}
	time.Sleep(100 * time.Millisecond)
	return fmt.Sprintf("%d notifications, %d late", len(before), len(came())-len(before)), nil
}

func (r *runner) cancel(ctx context.Context) (string, error) {
	p := r.opts.Profile.Cancel
	callCtx, abort := context.WithTimeout(ctx, 20*time.Second)
	defer abort()
	var aborted time.Time
	result, err := r.watched(callCtx, p, func(float64) {
		if aborted.IsZero() {
			aborted = time.Now()
			abort()
		}
	})
	r.seen.mu.Lock()
	took := time.Since(aborted).Round(time.Millisecond)
	never := aborted.IsZero()
	r.seen.mu.Unlock()
	switch {
	case never:
		return "", fmt.Errorf("no progress to abort after: %v, %v", result, err)
	case err == nil:
		return "", errors.New("the aborted call returned a result")
	case took > 2*time.Second:
		return "", fmt.Errorf("the aborted call took %v to end", took)
	}
	if err := r.call(ctx); err != nil {
		return "", err
	}
	if p.Count == "" {
		return fmt.Sprintf("ended after %v", took), nil
	}
	err = r.eventually(5*time.Second, "the server did not see the cancellation", func() (bool, error) {
		result, err := r.client.Call(ctx, p.Count, nil, "")
		return err == nil && result.Text != "0", err
	})
	return fmt.Sprintf("ended after %v, seen by the server", took), err
}

func (r *runner) log(ctx context.Context) (string, error) {
	p := r.opts.Profile.Log
	if err := r.client.SetLevel(ctx, "debug"); err != nil {
		return "", err
	}
	r.seen.forget(&r.seen.logs)
	if _, err := r.client.Call(ctx, p.Tool, p.Args, ""); err != nil {
		return "", err
	}
	return p.Want, r.eventually(8*time.Second, "no log message", func() (bool, error) {
		return r.seen.saw(&r.seen.logs, p.Want), nil
	})
}

// resourceUpdated repeats the trigger: not every client waits until its
// subscription is there.
func (r *runner) resourceUpdated(ctx context.Context) error {
	p := r.opts.Profile.Updated
	stop, err := r.client.Subscribe(ctx, p.URI)
	if err != nil {
		return err
	}
	err = r.triggered(ctx, p, "resources/updated", &r.seen.updated, p.URI)
	return errors.Join(err, stop())
}

func (r *runner) listChanged(ctx context.Context) error {
	p := r.opts.Profile.ListChanged
	r.seen.forget(&r.seen.changed)
	stop, err := r.client.Listen(ctx, p.Kind)
	if err != nil {
		return err
	}
	err = r.triggered(ctx, p, p.Kind+"/list_changed", &r.seen.changed, p.Kind)
	if err = errors.Join(err, stop()); err != nil || p.Grown == "" {
		return err
	}
	names, _, err := r.client.Tools(ctx)
	if err == nil && !slices.Contains(names, p.Grown) {
		err = fmt.Errorf("%s is not in %v", p.Grown, names)
	}
	return err
}

// triggered calls a tool until what it brings about is seen.
func (r *runner) triggered(ctx context.Context, p call, what string, list *[]string, want string) error {
	return r.eventually(8*time.Second, "no "+what, func() (bool, error) {
		if _, err := r.client.Call(ctx, p.Tool, p.Args, ""); err != nil {
			return false, err
		}
		for range 20 {
			if r.seen.saw(list, want) {
				return true, nil
			}
			time.Sleep(50 * time.Millisecond)
		}
		return false, nil
	})
}

func (r *runner) exact(ctx context.Context) error {
	const digits = "9007199254740993"
	result, err := r.client.Call(ctx, r.opts.Profile.Exact.Tool, map[string]any{"n": json.Number(digits)}, "")
	if err == nil && result.Text != digits {
		err = fmt.Errorf("%s came back as %s", digits, result.Text)
	}
	return err
}

func (r *runner) big(ctx context.Context) error {
	text := strings.Repeat(`x1"\y`, 1<<20/5+1)[:1<<20]
	got, err := r.echo(ctx, text, 1)
	if err == nil && got != text {
		err = fmt.Errorf("1 MiB came back as %d bytes, or changed", len(got))
	}
	return err
}

// meet makes two calls each of which ends only when the other one is there.
func (r *runner) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	p := r.opts.Profile.Meet
	return together(2, func(int) error {
		result, err := r.client.Call(ctx, p.Tool, p.Args, "")
		if err == nil && result.Text != p.Want {
			err = fmt.Errorf("%s gave %.80q", p.Tool, result.Text)
		}
		return err
	})
}

func (r *runner) many(ctx context.Context) error {
	return together(20, func(i int) error {
		text := fmt.Sprintf("call %d of twenty", i)
		got, err := r.echo(ctx, text, 100+i)
		if err == nil && got != text {
			err = fmt.Errorf("call %d got %q", i, got)
		}
		return err
	})
}
