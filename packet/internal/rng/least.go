package rng

import "github.com/simccl/simccl/internal/variates"

// Least draws one of those that are the least.
type Least struct {
	least   int64
	x, ties uint64
}

// NewLeast begins with a number in [0,1).
func NewLeast(x float64) Least { return Least{least: 1<<63 - 1, x: uint64(x * (1 << 32))} }

// Takes reports whether the next one takes the place of the one before: it is less, or one of several
// and drawn.
func (l *Least) Takes(d int64) bool {
	less := d < l.least
	if less {
		l.least, l.ties = d, 0
	}
	if d != l.least {
		return false
	}
	l.ties++ // the k-th of k is taken with probability 1/k
	l.x = variates.Mix(l.x)
	return l.x%l.ties == 0 || less
}
