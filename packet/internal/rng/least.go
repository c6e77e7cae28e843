package rng

import "github.com/simccl/simccl/internal/variates"

// Least chooses the smallest of a sequence of numbers, uniformly among equal ones, in one pass.
type Least struct {
	least   int64
	x, ties uint64
}

// NewLeast seeds the choice with a number in [0,1).
func NewLeast(x float64) Least { return Least{least: 1<<63 - 1, x: uint64(x * (1 << 32))} }

// Takes reports whether d becomes the choice.
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
