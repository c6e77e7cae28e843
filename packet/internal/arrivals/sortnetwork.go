package arrivals

// eight sorts five to eight keys by Batcher's odd-even merge network of 19 exchanges (see network).
func eight(keys []uint64) {
	const none = 1<<64 - 1
	a, b, c, d, e, f, g, h := keys[0], keys[1], keys[2], keys[3], keys[4], uint64(none), uint64(none),
		uint64(none)
	switch len(keys) {
	case 8:
		h = keys[7]
		fallthrough
	case 7:
		g = keys[6]
		fallthrough
	case 6:
		f = keys[5]
	}
	a, b = min(a, b), max(a, b)
	c, d = min(c, d), max(c, d)
	e, f = min(e, f), max(e, f)
	g, h = min(g, h), max(g, h)
	a, c = min(a, c), max(a, c)
	b, d = min(b, d), max(b, d)
	e, g = min(e, g), max(e, g)
	f, h = min(f, h), max(f, h)
	b, c = min(b, c), max(b, c)
	f, g = min(f, g), max(f, g)
	a, e = min(a, e), max(a, e)
	b, f = min(b, f), max(b, f)
	c, g = min(c, g), max(c, g)
	d, h = min(d, h), max(d, h)
	c, e = min(c, e), max(c, e)
	d, f = min(d, f), max(d, f)
	b, c = min(b, c), max(b, c)
	d, e = min(d, e), max(d, e)
	f, g = min(f, g), max(f, g)
	keys[0], keys[1], keys[2], keys[3], keys[4] = a, b, c, d, e
	switch len(keys) {
	case 8:
		keys[7] = h
		fallthrough
	case 7:
		keys[6] = g
		fallthrough
	case 6:
		keys[5] = f
	}
}
