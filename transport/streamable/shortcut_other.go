//go:build !unix

package streamable

import "syscall"

// canPeek says whether a peeker can tell: without that, net/http makes all requests.
const canPeek = false

// A peeker cannot tell anything here.
type peeker struct{ raw syscall.RawConn }

func newPeeker(syscall.Conn) peeker { return peeker{} }

func (p *peeker) quiet() bool { return false }
