package demo

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/mcpsplice/mcpsplice/mcp"
	"github.com/mcpsplice/mcpsplice/server"
)

// addends are numbers as they came: no Go type holds them all.
type addends struct {
	A mcp.JSON `json:"a"`
	B mcp.JSON `json:"b"`
}

func add(_ context.Context, _ *server.Call, in addends) (string, error) {
	a, errA := exact("a", string(in.A))
	b, errB := exact("b", string(in.B))
	if err := errors.Join(errA, errB); err != nil {
		return "", err
	}
	sum := a.Add(a, b)
	digits, _ := sum.FloatPrec() // a sum of decimals is one
	return sum.FloatString(digits), nil
}

// The largest numbers that add takes: an exponent is cheap to write and dear to
// compute with.
const (
	maxNumberBytes = 1000
	maxExponent    = 1000
)

// exact returns the number that a JSON literal is.
func exact(name, literal string) (*big.Rat, error) {
	exponent := new(big.Int)
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		exponent.SetString(literal[i+1:], 10)
	}
	if len(literal) > maxNumberBytes || exponent.CmpAbs(big.NewInt(maxExponent)) > 0 {
		return nil, fmt.Errorf("invalid arguments: %s is out of range", name)
	}
	number, ok := new(big.Rat).SetString(literal)
	if !ok {
		return nil, fmt.Errorf("invalid arguments: %s must be a number", name)
	}
	return number, nil
}
