package checks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// A Healer is a Client that survives its server.
type Healer interface {
	Client
	// Kill has the server killed, and one that the client does not start by
	// itself started again, in the same place.
	Kill() error
	// Outcome returns how a call failed that its server has not answered, and
	// "" for other errors.
	Outcome(err error) string
}

// RestartServer has the runner kill the server of an HTTP row and start it again
// on the same port.
func RestartServer() { fmt.Println(`{"restart":true}`) }

// How a call has to fail whose server was killed, and how one may that comes
// before the server is there again.
const (
	lost        = "connection lost, maybe executed"
	unreachable = "unreachable, not sent"
)

// endLimit is how long a call may go on without its server: over HTTP with sessions
// its stream is opened again for 7 s, in which the server may not be there again yet.
const endLimit = 12 * time.Second

// healLimit is how long a server may take to be there again.
const healLimit = 15 * time.Second

// heal has the server killed in the middle of a call. The call fails, and is not
// made a second time; the next one succeeds, and the subscription goes on.
func (r *runner) heal(ctx context.Context) (string, error) {
	healer, ok := r.client.(Healer)
	if !ok {
		return "", errors.New("this client does not heal")
	}
	p := r.opts.Profile
	listening, stop, err := r.listen(ctx, healer)
	if err != nil {
		return "", err
	}
	defer stop()
	how, err := r.kill(ctx, healer)
	if err != nil {
		return "", err
	}
	killed := time.Now()
	failures, err := r.callUntil(ctx, healer, killed.Add(healLimit))
	if err != nil {
		return "", err
	}
	took := time.Since(killed).Round(time.Millisecond)
	detail := fmt.Sprintf("%s; a call %v later, after %d that failed", how, took, failures)
	if listening {
		if err := r.resynced(ctx); err != nil {
			return "", fmt.Errorf("%w (%s)", err, detail)
		}
	}
	if n := executed(p.Heal.File); p.Heal.File != "" && n != 1 {
		return "", fmt.Errorf("the lost call was executed %d times (%s)", n, detail)
	}
	return detail, nil
}

// listen subscribes, unless the server has no subscriptions, which listchanged
// tells.
func (r *runner) listen(ctx context.Context, healer Healer) (listening bool, stop func(), err error) {
	var end func() error
	switch p := r.opts.Profile; {
	case p.ListChanged.Tool != "":
		end, err = healer.Listen(ctx, p.ListChanged.Kind)
	case p.Updated.Tool != "":
		end, err = healer.Subscribe(ctx, p.Updated.URI)
	default:
		return false, func() {}, nil
	}
	if _, _, refused := healer.Refused(err); refused {
		return false, func() {}, nil
	}
	return true, func() { _ = end() }, err
}

// kill has the server killed while it executes a call, if it has one that takes
// its time, and returns how the call ended.
func (r *runner) kill(ctx context.Context, healer Healer) (string, error) {
	p := r.opts.Profile.Heal
	if p.Tool == "" {
		return "no call in flight", healer.Kill()
	}
	began := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		if p.File != "" {
			_, err := r.client.Call(ctx, p.Tool, p.Args, "")
			ended <- err
			return
		}
		_, err := r.watched(ctx, p, func(float64) {
			select {
			case began <- struct{}{}:
			default:
			}
		})
		ended <- err
	}()
	err := r.eventually(8*time.Second, "the call was not executed", func() (bool, error) {
		return p.File != "" && executed(p.File) > 0 || len(began) > 0, nil
	})
	if err != nil {
		return "", err
	}
	if err := healer.Kill(); err != nil {
		return "", err
	}
	select {
	case err = <-ended:
	case <-time.After(endLimit):
		return "", errors.New("the call goes on without its server")
	}
	if how := healer.Outcome(err); how != lost {
		return "", fmt.Errorf("the call ended as %q (%w), want %q", how, err, lost)
	}
	return lost, nil
}

// callUntil calls until a call succeeds. Those before it must say what came of
// them: over a connection that has just broken that may be unknown. A server that
// asks for roots may also be there before it has got them.
func (r *runner) callUntil(ctx context.Context, healer Healer, end time.Time) (failures int, err error) {
	for {
		err := r.call(ctx)
		if err == nil {
			return failures, nil
		}
		how := healer.Outcome(err)
		known := how == lost || how == unreachable || r.opts.Profile.Roots.Tool != "" && errors.Is(err, errEcho)
		if !known || time.Now().After(end) {
			return failures, fmt.Errorf("a call after the restart: %w", err)
		}
		failures++
		time.Sleep(50 * time.Millisecond)
	}
}

// resynced waits until the subscription goes on, which says that something may
// have been missed, and tells of the next change.
func (r *runner) resynced(ctx context.Context) error {
	err := r.eventually(healLimit, "the subscription does not say that it goes on", func() (bool, error) {
		return r.seen.saw(&r.seen.resynced, ""), nil
	})
	if err != nil {
		return err
	}
	if p := r.opts.Profile.ListChanged; p.Tool != "" {
		r.seen.forget(&r.seen.changed)
		return r.triggered(ctx, p, p.Kind+"/list_changed after the restart", &r.seen.changed, p.Kind)
	}
	r.seen.forget(&r.seen.updated)
	p := r.opts.Profile.Updated
	return r.triggered(ctx, p, "resources/updated after the restart", &r.seen.updated, p.URI)
}

// executed counts the calls that the server has written down in a file in the directory of
// the row.
func executed(file string) int {
	b, _ := os.ReadFile(file)
	return bytes.Count(b, []byte("\n"))
}
