package jsonrpc

import "bytes"

// MaxBatch is how many messages a batch may hold.
const MaxBatch = 100

// IsBatch reports whether data begins like a JSON-RPC batch, an array.
func IsBatch(data []byte) bool {
	data = bytes.TrimLeft(bytes.TrimPrefix(data, bom), " \t\r\n")
	return len(data) > 0 && data[0] == '['
}

// SplitBatch returns the items of a batch as sub-slices of data, or copies of those that
// are a small part of it, so that they can be kept. Each is to be
// scanned for itself: it succeeds or fails alone, also for what Scan refuses
// inside the items as bad UTF-8 or nesting. The error is a [*MessageError]: data
// is no valid JSON or no array, is empty, or holds more than [MaxBatch] items.
func SplitBatch(data []byte) ([][]byte, error) {
	items, err := splitBatch(data)
	if err != nil {
		return nil, refusal(err)
	}
	for i, item := range items {
		if isSmallIn(len(item), data) {
			items[i] = bytes.Clone(item)
		}
	}
	return items, nil
}

func splitBatch(data []byte) ([][]byte, error) {
	s, err := newScanner(data)
	if err != nil {
		return nil, err
	}
	s.skipBOM()
	var items [][]byte
	n, array := 0, s.space() == '['
	if array {
		items, n, err = s.elements(MaxBatch)
	} else {
		err = s.value(0)
	}
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
		return nil, err
	case !array:
		return nil, invalid("a batch must be an array")
	case n == 0:
		return nil, invalid("a batch must not be empty")
	case n > MaxBatch:
		return nil, invalid("batch of %d messages is over the limit MaxBatch of %d", n, MaxBatch)
	}
	return items, nil
}
