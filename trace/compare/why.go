package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// Labels beside the model's terms: time that no term explains, and
// the part of an operation that its kernels explain.
const (
	notInModel = "not in the model"
	inKernel   = "kernel"
)

// The same as numbers, behind those of the terms.
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

// Part is how much of a difference a term of the timing model makes.
type Part struct {
	Term string  `json:"term"`
	Us   float64 `json:"us"`
	// Reported: both traces report it. Otherwise it is inferred from how the time
	// depends on size and how it varies, or, failing that, in proportion.
	Reported bool `json:"told"`
	// Waits: it follows from something else that was late.
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

// parts are microseconds by part, reported and inferred.
type parts struct{ reported, guess [numParts]float64 }

func (p *parts) add(o *parts) {
	for i := range p.reported {
		p.reported[i] += o.reported[i]
		p.guess[i] += o.guess[i]
	}
}

// list gives the parts of n slices beyond what rounding to nanoseconds makes,
// causes before waits, the largest first.
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

// size is the fastest slice of a kind and size, on either side.
type size struct {
	bytes int64
	fast  [2]units.Time
	count int
}

// kind is what is known of one kind of slice.
type kind struct {
	has   [2]bool // slices of that side say what they consist of
	mean  nccl.Terms
	sizes map[int64]*size
	// perByte: what the fastest slices of a size take longer in the second trace, by the
	// byte; the rest of it is fixed.
	perByte float64
	split   bool // the two can be separated
}

// pairing is two slices that meet.
type pairing struct {
	key  *series
	n    int
	a, b *slice
}

// explainer leads the differences of two traces back to terms.
type explainer struct {
	kinds map[kindKey]*kind
	start [2]map[string]units.Time // by thread: when its last kernel begins
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
	for _, k := range x.kinds {
		k.fit()
	}
	return x
}

// learn takes a pair into what is known of its kind.
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

// fit draws the line through what the fastest slices of each size take longer:
// costs are fixed, or go by the byte. Sizes must differ by half at least.
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

// explain says what the difference of two slices consists of; ok is false
// where neither trace says anything of their kind.
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
		// Who begins early waits for who begins last.
		put(int(nccl.Data),
			((x.start[1][p.key.thread] - p.b.start) - (x.start[0][p.key.thread] - p.a.start)).Micros())
	}
	k.infer(&out, p, rest)
	return out, true
}

// infer shares a difference out where only one trace has terms. Where the kind
// waits, it waits longer. Else what the fastest slice of the size takes longer
// is a cost; what this one takes beyond, against its partner, is sharing.
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

// amount is how much the model has of some terms.
func (k *kind) amount(of func(nccl.Term) bool) (sum units.Time) {
	for t := range nccl.NumTerms {
		if of(t) {
			sum += k.mean[t]
		}
	}
	return sum
}

// share gives time to some terms in the model's proportion; to none where the
// model has none of them.
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
