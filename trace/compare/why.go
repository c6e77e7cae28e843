package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// Labels in addition to the model's terms: time that no term explains, and the part of an operation that its
// kernels explain.
const (
	notInModel = "not in the model"
	inKernel   = "kernel"
)

// Their indexes, after those of the terms.
const (
	restPart   = int(nccl.NumTerms)
	kernelPart = restPart + 1
	numParts   = kernelPart + 1
)

func partName(i int) string {
	switch i {
	case restPart:
		return notInModel
	case kernelPart:
		return inKernel
	}
	return nccl.Term(i).String()
}

// Part is the contribution of a term of the timing model to a difference.
type Part struct {
	Term string  `json:"term"`
	Us   float64 `json:"us"`
	// Reported: both traces report the term. Otherwise it is inferred from how the time depends on size and
	// how it varies or, failing that, in proportion.
	Reported bool `json:"told"`
	// Waits: the term is caused by a delay elsewhere.
	Waits bool `json:"waits"`
}

// Reason is one component of the difference between slices of one kind.
type Reason struct {
	Cat    string  `json:"cat"`
	Name   string  `json:"name"`
	Slices int     `json:"slices"`
	DiffUs float64 `json:"difference_us"`
	Parts  []Part  `json:"parts"`
}

// parts holds microseconds by part, reported and inferred.
type parts struct{ reported, guess [numParts]float64 }

func (p *parts) add(o *parts) {
	for i := range p.reported {
		p.reported[i] += o.reported[i]
		p.guess[i] += o.guess[i]
	}
}

// list returns the parts of n slices that exceed the rounding to nanoseconds, causes before waits, the
// largest first.
func (p *parts) list(n int) []Part {
	out := []Part{}
	noise := 0.0025 * math.Sqrt(float64(max(1, n)))
	for i := range numParts {
		waits := i < restPart && nccl.Term(i).Waits()
		for _, t := range []struct {
			us       float64
			reported bool
		}{{p.reported[i], i < restPart || i == kernelPart}, {p.guess[i], false}} {
			if math.Abs(t.us) >= noise {
				out = append(out, Part{partName(i), t.us, t.reported, waits})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Part) int {
		if a.Waits != b.Waits {
			return cmp.Compare(b2i(a.Waits), b2i(b.Waits))
		}
		return cmp.Compare(math.Abs(b.Us), math.Abs(a.Us))
	})
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// size is the fastest slice of a kind and size, in each trace.
type size struct {
	bytes int64
	fast  [2]units.Time
	count int
}

// kind accumulates the data of one kind of slice.
type kind struct {
	has   [2]bool // by trace: slices have terms
	mean  nccl.Terms
	sizes map[int64]*size
	// perByte is the additional time per byte of the fastest slices in the second trace; the remaining
	// difference is fixed.
	perByte float64
	split   bool // fixed and per-byte parts can be separated
}

// pairing is two matched slices.
type pairing struct {
	key  *series
	n    int
	a, b *slice
}

// explainer attributes the differences of two traces to terms.
type explainer struct {
	kinds map[kindKey]*kind
	start [2]map[string]units.Time // by thread: begin of its last kernel
}

func newExplainer(sides [2]*side, pairs []pairing) *explainer {
	x := &explainer{kinds: map[kindKey]*kind{}, start: [2]map[string]units.Time{{}, {}}}
	for s, d := range sides {
		for k, list := range d.slices { //lint:sorted flags and a maximum
			id := kindKey{k.cat, k.name}
			if x.kinds[id] == nil {
				x.kinds[id] = &kind{sizes: map[int64]*size{}}
			}
			for i := range list {
				if list[i].reported {
					x.kinds[id].has[s] = true
				}
				if k.cat == "GPU" {
					x.start[s][k.thread] = max(x.start[s][k.thread], list[i].start)
				}
			}
		}
	}
	for i := range pairs {
		p := &pairs[i]
		x.kinds[kindKey{p.key.cat, p.key.name}].learn(p)
	}
	for _, k := range x.kinds { //lint:sorted each is fitted by itself
		k.fit()
	}
	return x
}

// learn adds a pair to the data of its kind.
func (k *kind) learn(p *pairing) {
	model := p.a
	if !k.has[0] {
		model = p.b
	}
	k.mean.Add(&model.terms)
	s := k.sizes[p.a.bytes]
	if s == nil {
		s = &size{p.a.bytes, [2]units.Time{p.a.dur(), p.b.dur()}, 0}
		k.sizes[p.a.bytes] = s
	}
	s.fast = [2]units.Time{min(s.fast[0], p.a.dur()), min(s.fast[1], p.b.dur())}
	s.count++
}

// fit fits a line to the additional time of the fastest slices by size: costs are fixed, or per byte. Sizes
// must differ by at least half.
func (k *kind) fit() {
	list := slices.SortedFunc(maps.Values(k.sizes), func(a, b *size) int {
		return cmp.Compare(a.bytes, b.bytes)
	})
	if len(list) < 2 || 2*list[0].bytes > list[len(list)-1].bytes {
		return
	}
	var n, sx, sy, sxx, sxy float64
	for _, s := range list {
		w, x, y := float64(s.count), float64(s.bytes), (s.fast[1] - s.fast[0]).Micros()
		n, sx, sy, sxx, sxy = n+w, sx+float64(w*x), sy+float64(w*y), sxx+float64(w*x*x), sxy+float64(w*x*y)
	}
	if d := float64(n*sxx) - float64(sx*sx); d > 0 {
		k.perByte = (float64(n*sxy) - float64(sx*sy)) / d
		k.split = true
	}
}

// explain attributes the difference of two slices; ok is false if neither trace has terms for their kind.
func (x *explainer) explain(p *pairing) (out parts, ok bool) {
	k := x.kinds[kindKey{p.key.cat, p.key.name}]
	rest := (p.b.dur() - p.a.dur()).Micros()
	put := func(i int, us float64) { out.reported[i] += us; rest -= us }
	whole := p.key.cat == "COLL" || p.key.cat == "P2P"
	switch {
	case !k.has[0] && !k.has[1]:
		return out, false
	case k.has[0] && k.has[1] || whole:
		for t := range nccl.NumTerms {
			put(int(t), (p.b.terms[t] - p.a.terms[t]).Micros())
		}
		if whole {
			put(kernelPart, rest)
		}
		out.guess[restPart] += rest
		return out, true
	case p.key.cat == "GPU":
		// The rank that begins early waits for the one that begins last.
		put(int(nccl.Data),
			((x.start[1][p.key.thread] - p.b.start) - (x.start[0][p.key.thread] - p.a.start)).Micros())
	}
	k.infer(&out, p, rest)
	return out, true
}

// infer attributes a difference if only one trace has terms. If the kind has waits, the wait is longer.
// Otherwise the additional time of the fastest slice of that size is a cost, and the time beyond that is
// sharing.
func (k *kind) infer(out *parts, p *pairing, rest float64) {
	waits := func(t nccl.Term) bool { return t.Waits() }
	if p.key.cat == "GPU" {
		k.share(out, rest, func(nccl.Term) bool { return true })
		return
	}
	if k.amount(waits) > 0 {
		k.share(out, rest, waits)
		return
	}
	s := k.sizes[p.a.bytes]
	base := (s.fast[1] - s.fast[0]).Micros()
	k.share(out, rest-base, nccl.Term.Varies)
	if !k.split {
		k.share(out, base, func(t nccl.Term) bool { return !t.Varies() })
		return
	}
	bytes := k.perByte * float64(p.a.bytes)
	byByte := func(t nccl.Term) bool { return t == nccl.Copy || t == nccl.NIC }
	k.share(out, bytes, byByte)
	k.share(out, base-bytes, func(t nccl.Term) bool { return !t.Varies() && !byByte(t) })
}

// amount returns the model's total of some terms.
func (k *kind) amount(of func(nccl.Term) bool) (sum units.Time) {
	for t := range nccl.NumTerms {
		if of(t) {
			sum += k.mean[t]
		}
	}
	return sum
}

// share distributes time over some terms in the model's proportion; if the model has none of them, the time
// counts as unexplained.
func (k *kind) share(out *parts, us float64, of func(nccl.Term) bool) {
	sum := k.amount(of)
	if sum <= 0 {
		out.guess[restPart] += us
		return
	}
	for t := range nccl.NumTerms {
		if of(t) {
			out.guess[t] += us * float64(k.mean[t]) / float64(sum)
		}
	}
}
