package ibv

// share returns the part of a message that QP q of nq carries: equal parts, multiples of 128 bytes
// (net_ib.cc:2133).
func share(size, q, nq int) (off, n int) {
	part := (size + nq - 1) / nq
	part = (part + 127) / 128 * 128
	off = min(q*part, size)
	return off, min(part, size-off)
}
