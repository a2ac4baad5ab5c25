package schema

import (
	"errors"
	"fmt"

	json "github.com/go-json-experiment/json"
)

// How much errors show of what somebody else has written, in characters: of a
// member's name, and of why a value does not fit, as the library of schemas shows
// the whole value.
const (
	maxShownName   = 100
	maxShownReason = 1000
)

// Plainly returns an error of decoding as a model can understand it.
func Plainly(err error) error {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return err
	}
	where := string(wrong.JSONPointer)
	if where == "" {
		where = "the value"
	}
	where = shortened(where, maxShownName)
	if wrong.Err != nil {
		return fmt.Errorf("%s does not fit: %s", where, shortened(wrong.Err.Error(), maxShownReason))
	}
	return fmt.Errorf("%s does not fit: it is of type %s", where, wrong.JSONKind)
}

// shortened returns text, cut to a number of characters.
func shortened(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i] + "…"
		}
		n--
	}
	return text
}
