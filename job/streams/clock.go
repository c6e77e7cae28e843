package streams

import "github.com/simccl/simccl/units"

// Clock times operations of streams while the program that makes them runs and its next ones are unknown. An
// operation is ready at the latest of the host's call and of the ends of all that it waits for: the operation
// before it on its stream, those of the default stream, events, the kernel before it of its communicator. It
// has no order of time: an end at 100 us is given while other hosts are at 50 us and have yet to call. So
// nothing is shared here; who drives it says when an operation that is ready ends.
//
// Run orders a known program by the same rule. There every wait is an edge of a list's graph that ranks
// share, time passes in order, and what is left of an operation is the count of the ends before it.
//
//	host       call A      call B              A.Ready = call A
//	stream 1   [--A--]     .  [-B-]            B.Ready = C.End: B waits for A and for event C
//	stream 2        [---C-----]
//
// T is the driver's type of an operation. Operations that have ended are forgotten, but by who holds them.
type Clock[T any] struct {
	// Arrive is called with an operation once all that it waits for has ended.
	Arrive func(T)
	ended  []*Operation[T] // their successors are not released yet
}

// Operation is an operation of a stream.
type Operation[T any] struct {
	Of      T
	Ready   units.Time // latest of the host's call and the ends before it so far
	End     units.Time
	Arrived bool // all that it waits for has ended
	Ended   bool
	waits   int // operations before it that have not ended
	next    []*Operation[T]
}

// Stream is a sequence of operations of a device.
type Stream[T any] struct {
	// Legacy is CUDA's default stream, which waits for the streams that Join it, as they do for it.
	Legacy, Joins bool
	Tail          *Operation[T] // the last operation; nil: none
}

// Device is a device's streams, in the order in which they were first used.
type Device[T any] []*Stream[T]

// Enqueue appends an operation that the host calls at a time to a stream; it waits for others, too (nil:
// none). Begin lets it go on.
func (d Device[T]) Enqueue(s *Stream[T], o *Operation[T], called units.Time, others ...*Operation[T]) {
	o.Ready = called
	o.behind(s.Tail)
	for _, b := range others {
		o.behind(b)
	}
	for _, x := range d {
		if x != s && (s.Legacy && x.Joins || x.Legacy && s.Joins) {
			o.behind(x.Tail)
		}
	}
	s.Tail = o
}

// Tails returns the last operations of the streams that a host waits for with a stream, or, if it is nil,
// with the device.
func (d Device[T]) Tails(s *Stream[T]) (list []*Operation[T]) {
	if s != nil && s.Tail != nil {
		list = append(list, s.Tail)
	}
	for _, x := range d {
		if x.Tail != nil && (s == nil || s.Legacy && x.Joins) {
			list = append(list, x.Tail)
		}
	}
	return list
}

// LastEnd returns when the last of some operations ends; ok is false if one has not ended.
func LastEnd[T any](list []*Operation[T]) (at units.Time, ok bool) {
	for _, o := range list {
		if !o.Ended {
			return 0, false
		}
		at = max(at, o.End)
	}
	return at, true
}

func (o *Operation[T]) behind(b *Operation[T]) {
	switch {
	case b == nil || b == o:
	case b.Ended:
		o.Ready = max(o.Ready, b.End)
	default:
		b.next = append(b.next, o)
		o.waits++
	}
}

// Begin has an operation arrive if it waits for nothing.
func (c *Clock[T]) Begin(o *Operation[T]) {
	if o.waits == 0 && !o.Arrived {
		c.arrive(o)
	}
	c.Settle()
}

// Finish ends an operation at a time, and reports whether it had not ended before. What waits for it goes on
// with Settle.
func (c *Clock[T]) Finish(o *Operation[T], at units.Time) bool {
	if o.Ended {
		return false
	}
	o.Ended, o.End = true, at
	c.ended = append(c.ended, o)
	return true
}

// Settle releases what waits for operations that have ended, and what ends by that.
func (c *Clock[T]) Settle() {
	for len(c.ended) > 0 {
		o := c.ended[0]
		c.ended = c.ended[1:]
		for _, n := range o.next {
			n.Ready = max(n.Ready, o.End)
			if n.waits--; n.waits == 0 {
				c.arrive(n)
			}
		}
		o.next = nil
	}
}

func (c *Clock[T]) arrive(o *Operation[T]) {
	o.Arrived = true
	c.Arrive(o.Of)
}
