package schema

import (
	"math/big"
	"math/bits"
	"strconv"
)

// A divisor is what numbers must be multiples of.
type divisor struct {
	decimal
	text  string
	small uint64   // its digits, if so many fit
	large *big.Int // else
}

// MaxDivisorDigits is how many digits the multipleOf of a schema may have.
const MaxDivisorDigits = 400

// newDivisor returns the divisor that d is, which is positive, nil for another one.
func newDivisor(d decimal, text string) *divisor {
	if d.sign() <= 0 {
		return nil
	}
	by := &divisor{decimal: d, text: text}
	var err error
	if by.small, err = strconv.ParseUint(string(d.digits), 10, 64); err != nil {
		by.small = 0
		by.large, _ = new(big.Int).SetString(string(d.digits), 10)
	}
	return by
}

// steps returns what divides takes of a budget. Without large numbers it is no more than
// passing over d.
func (by *divisor) steps(d decimal) int {
	if by.large == nil {
		return 0
	}
	return (len(d.digits)/digitsAtOnce + 64) * len(by.digits) / bytesPerStep
}

// divides reports whether d is a multiple. The digits of d do not end in a zero, so
// that a last digit of it beyond that of the divisor leaves a rest. Else they are
// divided with as many zeros after them as the last digits are apart.
func (by *divisor) divides(d decimal) bool {
	if d.sign() == 0 {
		return true
	}
	zeros := d.last() - by.last()
	if zeros < 0 {
		return false
	}
	if by.large != nil {
		return by.dividesLarge(d, zeros)
	}
	rest := uint64(0)
	for _, digit := range d.digits {
		rest = by.timesPlus(rest, 10, uint64(digit-'0'))
	}
	if rest == 0 {
		return true
	}
	for power := 10 % by.small; zeros > 0; zeros >>= 1 {
		if zeros&1 == 1 {
			rest = by.timesPlus(rest, power, 0)
		}
		power = by.timesPlus(power, power, 0)
	}
	return rest == 0
}

// timesPlus returns the rest of a times b plus c, where a or b is less than the divisor.
func (by *divisor) timesPlus(a, b, c uint64) uint64 {
	high, low := bits.Mul64(a, b)
	low, carry := bits.Add64(low, c, 0)
	return bits.Rem64(high+carry, low, by.small)
}

// digitsAtOnce is how many digits of a long number are divided at once.
const digitsAtOnce = 18

func (by *divisor) dividesLarge(d decimal, zeros int) bool {
	ten := big.NewInt(10)
	rest, next := new(big.Int), new(big.Int)
	for digits := d.digits; len(digits) > 0; {
		n := min(len(digits), digitsAtOnce)
		part, _ := strconv.ParseInt(string(digits[:n]), 10, 64)
		rest.Mul(rest, next.Exp(ten, next.SetInt64(int64(n)), nil))
		rest.Rem(rest.Add(rest, next.SetInt64(part)), by.large)
		digits = digits[n:]
	}
	rest.Mul(rest, next.Exp(ten, big.NewInt(int64(zeros)), by.large))
	return rest.Rem(rest, by.large).Sign() == 0
}
