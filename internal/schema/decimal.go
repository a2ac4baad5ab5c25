package schema

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// A decimal is a number of JSON as it is written, which a float64 only comes near:
// 0.digits times ten to the power of exponent. Nothing is made of its size: a large
// exponent takes no more than a small one.
type decimal struct {
	digits   []byte // without zeros at either end; none for zero
	exponent int
	negative bool
}

// maxExponent is how large an exponent can be that is compared exactly. Numbers beyond
// are as if they had it.
const maxExponent = 1_000_000_000_000_000

// newDecimal returns the number of a literal, valid JSON. It may share its bytes.
func newDecimal(literal []byte) decimal {
	var d decimal
	mantissa := literal
	if d.negative = literal[0] == '-'; d.negative {
		mantissa = mantissa[1:]
	}
	power := 0
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		mantissa, power = mantissa[:i], readPower(mantissa[i+1:])
	}
	point := bytes.IndexByte(mantissa, '.')
	if point < 0 {
		point = len(mantissa)
	}
	digits := bytes.TrimLeft(mantissa, "0.")
	if len(digits) == 0 {
		return decimal{}
	}
	// What has been cut off stands before the point, or the point is among it.
	d.exponent = power + point - (len(mantissa) - len(digits))
	if len(mantissa)-len(digits) > point {
		d.exponent++
	}
	d.exponent = max(-maxExponent, min(d.exponent, maxExponent))
	digits = withoutPoint(digits)
	d.digits = bytes.TrimRight(digits, "0")
	return d
}

func withoutPoint(digits []byte) []byte {
	point := bytes.IndexByte(digits, '.')
	if point < 0 {
		return digits
	}
	return append(digits[:point:point], digits[point+1:]...)
}

// readPower returns the power of ten of a literal, or one beyond maxExponent.
func readPower(text []byte) int {
	sign := 1
	switch text[0] {
	case '-':
		sign = -1
		fallthrough
	case '+':
		text = text[1:]
	}
	n := 0
	for _, digit := range text {
		if n = n*10 + int(digit-'0'); n > 2*maxExponent {
			return sign * n
		}
	}
	return sign * n
}

// decimalOf returns the number that was read as f, of at most exactDigits digits.
func decimalOf(f float64) decimal {
	return newDecimal(strconv.AppendFloat(nil, f, 'e', -1, 64))
}

// exactDigits is how many digits a number may have, and farExponent how far from one it
// may be, that no other such number is read as the same float64.
const (
	exactDigits = 15
	farExponent = 290
)

// isShort reports whether a literal is exact without reading it.
func isShort(literal []byte) bool {
	return len(literal) <= exactDigits && bytes.IndexByte(literal, 'e') < 0 && bytes.IndexByte(literal, 'E') < 0
}

// inexact returns the number of a literal that is not exact, nil for one that is.
func inexact(literal []byte) *decimal {
	if isShort(literal) {
		return nil
	}
	if d := newDecimal(literal); !d.isExact() {
		return &d
	}
	return nil
}

// isExact reports whether a float64 tells the number from all others that are exact.
func (d decimal) isExact() bool {
	return len(d.digits) <= exactDigits && d.exponent < farExponent && d.exponent > -farExponent
}

// isInteger reports whether there is no fraction.
func (d decimal) isInteger() bool { return d.last() >= 0 }

// last returns the power of ten that the last digit stands for.
func (d decimal) last() int {
	if len(d.digits) == 0 {
		return math.MaxInt
	}
	return d.exponent - len(d.digits)
}

func (d decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// compare returns less than 0 if d is less than other, more if it is more.
func (d decimal) compare(other decimal) int {
	sign := d.sign()
	if order := cmp.Compare(sign, other.sign()); order != 0 || sign == 0 {
		return order
	}
	if order := cmp.Compare(d.exponent, other.exponent); order != 0 {
		return sign * order
	}
	return sign * bytes.Compare(d.digits, other.digits)
}
