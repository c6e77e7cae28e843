package channels

import "math/bits"

// Parts returns the number of channels of a transfer of some bytes, between least and most
// (enqueue.cc:890-899). step is a FIFO step of the protocol: within a node a part has at least an eighth of a
// step, and parts of more than 32 steps are divided further; between nodes the bounds are half a step and one
// step.
func Parts(bytes, step int64, least, most, nodes int) int {
	if bytes == 0 {
		return 1
	}
	small, large := step/8, step*32
	if nodes > 1 {
		small, large = step/2, step
	}
	small = max(small, 1)
	n := min(int64(least), divUp(bytes, small))
	size := max(small, divUp(bytes, n))
	for size > large && n <= int64(most/2) {
		n *= 2
		size = divUp(bytes, n)
	}
	return int(n)
}

func divUp(a, b int64) int64 { return (a + b - 1) / b }

// mantissa keeps the leading bit and the next three, as NCCL's 8-bit encoding of
// chunk sizes does (bitops.h:407): 1000 becomes 960.
func mantissa(x int64) int64 {
	if n := bits.Len64(uint64(x)); n > 4 {
		return x >> (n - 4) << (n - 4)
	}
	return x
}
