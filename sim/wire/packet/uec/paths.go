package uec

// paths chooses the entropy of each packet of a flow (sim/uec_mp.cpp,
// sim/buffer_reps.cpp).
type paths struct {
	balance Balance
	mask    uint16
	upper   uint16 // bits above the mask that stay
	xor     uint16 // of this round
	index   uint16 // in this round
	fixed   uint16 // ECMP's path
	skip    []uint8
	recycle ring[uint16] // Mixed: paths of unmarked acknowledgements
	reps    reps
	draws   uint64
}

// maxPenalty bounds how often a path is skipped.
const maxPenalty = 15

// newPaths draws a flow's first paths.
func newPaths(c *Config, r *setup) paths {
	p := paths{balance: c.Balance, mask: uint16(c.Paths - 1)}
	switch c.Balance {
	case ECMP:
		p.fixed = uint16(r.next() % uint32(c.Paths))
	case Oblivious, Bitmap, Mixed:
		p.upper = uint16(r.next()%0xffff) &^ p.mask
		p.xor = uint16(r.next() % uint32(c.Paths))
	}
	return p
}

// random returns a path by chance.
func (p *paths) random(seed uint64, flow int32) uint16 {
	p.draws++
	return uint16(draw(seed, uint64(flow)|1<<40, p.draws)) & p.mask
}

// step goes to the next path of the round.
func (p *paths) step(seed uint64, flow int32) {
	if p.index++; p.index > p.mask {
		p.index = 0
		p.xor = p.random(seed, flow)
	}
}

// next returns the path of the next packet.
func (p *paths) next(seed uint64, flow int32) uint16 {
	switch p.balance {
	case ECMP:
		return p.fixed
	case REPS:
		if v, ok := p.reps.take(); ok {
			return v
		}
		return p.random(seed, flow)
	case Mixed:
		if !p.recycle.empty() {
			return p.recycle.pop()
		}
	}
	v := (p.index ^ p.xor) & p.mask
	if p.skip != nil {
		for tries := 0; p.skip[v] > 0; {
			if tries == 0 {
				p.skip[v]--
			}
			if tries++; tries > int(p.mask)+1 {
				break
			}
			p.step(seed, flow)
			v = (p.index ^ p.xor) & p.mask
		}
	}
	p.step(seed, flow)
	return v | p.upper
}

// Feedback of a path.
const (
	good = iota
	marked
	nacked
	expired
)

// learn takes note of how a path fared.
func (p *paths) learn(path uint16, how int) {
	if p.skip != nil {
		s := &p.skip[path&p.mask]
		*s = min(maxPenalty, *s+[...]uint8{0, 1, 4, maxPenalty}[how])
	}
	switch {
	case how == good && p.balance == Mixed:
		p.recycle.push(path)
	case how == good && p.balance == REPS:
		p.reps.add(path)
	}
}

// repsSize is how many paths REPS remembers.
const repsSize = 8

// reps is a ring of paths that proved good, each used once.
type reps struct {
	path  [repsSize]uint16
	valid [repsSize]bool
	head  int
	fresh int
}

func (r *reps) add(path uint16) {
	if !r.valid[r.head] {
		r.fresh++
	}
	r.path[r.head], r.valid[r.head] = path, true
	r.head = (r.head + 1) % repsSize
}

func (r *reps) take() (uint16, bool) {
	if r.fresh == 0 {
		return 0, false
	}
	i := (r.head - r.fresh + repsSize) % repsSize
	r.valid[i] = false
	r.fresh--
	return r.path[i], true
}
