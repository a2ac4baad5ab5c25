package floor

import (
	"errors"
	"io"

	"github.com/mcpsplice/mcpsplice/bench/internal/lines"
)

// A full write buffer is written even while lines are left to answer.
const writeBuffer = 64 << 10

// ServeStdio answers the lines of in on out until in ends. The answers to all
// lines that came together are one write.
func (s *Server) ServeStdio(in io.Reader, out io.Writer) error {
	var (
		requests = lines.NewReader(in)
		replies  []byte
	)
	for {
		line, err := requests.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		before := len(replies)
		if replies = s.answer(replies, line); len(replies) > before {
			replies = append(replies, '\n')
		}
		if len(replies) >= writeBuffer || len(replies) > 0 && !requests.Ready() {
			if _, err := out.Write(replies); err != nil {
				return err
			}
			replies = replies[:0]
		}
	}
}

// EchoStdio gives every byte of in back on out until in ends.
func EchoStdio(in io.Reader, out io.Writer) error {
	const echoBuffer = 256 << 10
	buf := make([]byte, echoBuffer)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
