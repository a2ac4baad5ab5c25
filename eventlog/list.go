package eventlog

// A list is a doubly linked list, of which each value knows its place.
type list[T any] struct {
	first, last *node[T]
}

type node[T any] struct {
	value      T
	prev, next *node[T]
}

// push adds a value at the end.
func (l *list[T]) push(value T) *node[T] {
	n := &node[T]{value: value, prev: l.last}
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
	return n
}

func (l *list[T]) remove(n *node[T]) {
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
}
