package faulttest

import (
	"time"
)

// A Step is one thing that a child does. Functions of this package make them.
type Step struct {
	Do     action `json:"do"`
	Text   []byte `json:"text,omitempty"`
	Number int64  `json:"number,omitempty"`
}

// A Script is what a child does, in order. At its end the child exits with status
// 0.
type Script []Step

type action string

const (
	doHandshake     action = "handshake"
	doExpect        action = "expect"
	doWrite         action = "write"
	doComplain      action = "complain"
	doFlood         action = "flood"
	doFloodOn       action = "flood on"
	doPause         action = "pause"
	doClose         action = "close"
	doIgnoreSignals action = "ignore signals"
	doGrandchild    action = "grandchild"
	doServe         action = "serve"
	doServeHTTP     action = "serve HTTP"
	doDrain         action = "drain"
	doHang          action = "hang"
	doExit          action = "exit"
	doDie           action = "die"
)

// Handshake answers what a client of the child's era says first, and goes on when
// the client has begun. A legacy child refuses the probe of modern clients.
func Handshake() Step { return Step{Do: doHandshake} }

// Expect goes on with the next request of a method, or of any if method is empty, or
// with the next notification of that name. Other requests are answered with an empty
// result.
func Expect(method string) Step { return Step{Do: doExpect, Text: []byte(method)} }

// Write writes text to stdout, byte for byte in one piece. In it $ID stands for the
// id of the request that was expected last, and $TOKEN for its progress token.
func Write(text string) Step { return Step{Do: doWrite, Text: []byte(text)} }

// Complain writes text to stderr.
func Complain(text string) Step { return Step{Do: doComplain, Text: []byte(text)} }

// Flood writes text to a stream, again and again, until there were at least size
// bytes.
func Flood(to Stream, text string, size int64) Step {
	return Step{Do: doFlood, Text: []byte{byte(to)}, Number: size}.withText(text)
}

func (s Step) withText(text string) Step {
	s.Text = append(s.Text, text...)
	return s
}

// FloodOn writes text to a stream beside the steps that follow, about so many bytes
// a second, until the child ends.
func FloodOn(to Stream, text string, perSecond int64) Step {
	return Step{Do: doFloodOn, Text: []byte{byte(to)}, Number: perSecond}.withText(text)
}

// Pause does nothing for a while.
func Pause(d time.Duration) Step { return Step{Do: doPause, Number: int64(d)} }

// A Stream is one of a child's standard streams.
type Stream byte

// The standard streams.
const (
	Stdin Stream = iota
	Stdout
	Stderr
)

// Close closes a standard stream.
func Close(s Stream) Step { return Step{Do: doClose, Number: int64(s)} }

// IgnoreSignals ignores all signals that can be ignored, from now on.
func IgnoreSignals() Step { return Step{Do: doIgnoreSignals} }

// Grandchild starts another process that holds the child's standard streams and
// ignores signals. It ends by itself after an hour.
func Grandchild() Step { return Step{Do: doGrandchild} }

// Drain reads stdin to its end, and answers nothing.
func Drain() Step { return Step{Do: doDrain} }

// Hang does nothing any more, and does not read.
func Hang() Step { return Step{Do: doHang} }

// Exit exits with a status.
func Exit(status int) Step { return Step{Do: doExit, Number: int64(status)} }

// Die kills the child, as kill -9 does.
func Die() Step { return Step{Do: doDie} }

// Serve answers all requests until the end of stdin. What becomes of a call of a
// tool, its arguments say: an [Order].
func Serve() Step { return Step{Do: doServe} }

// ServeHTTP answers all requests over HTTP at an address of the loopback interface
// until stdin ends, and writes the address to stdout as a line. Port 0 is any free
// port.
func ServeHTTP(address string) Step { return Step{Do: doServeHTTP, Text: []byte(address)} }
