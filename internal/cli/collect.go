package cli

import (
	"errors"
	"iter"

	"github.com/mcpsplice/mcpsplice/jsonrpc"
)

// lacks reports whether a server says that it has no such method.
func lacks(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code == jsonrpc.CodeMethodNotFound
}

// collect returns what a list has. What a server does not have at all is an empty
// list.
func collect[Item any](items iter.Seq2[Item, error]) ([]Item, error) {
	var all []Item
	for item, err := range items {
		switch {
		case lacks(err) && len(all) == 0:
			return nil, nil
		case err != nil:
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
