package transform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// grain is a gradient, or a piece of a bucket, that becomes ready at once.
type grain struct {
	step     int // the step after which it is ready
	elements int64
}

// bucket is a recorded reduction of gradients and the gradients in it.
type bucket struct {
	step   int // of its list
	grains []grain
}

// reducer is a communicator that reduces gradients.
type reducer struct {
	comm    int
	overlap bool // beside the backward pass, as DDP does
}

// buckets regroups the all_reduces of DDP, or leaves them out.
func buckets(p *workload.Program, s Variant) (notes []string, err error) {
	setting := "bucket"
	if s.NoSync {
		setting = "no-sync"
	}
	found, overlapped := reducers(p), false
	for _, r := range found {
		overlapped = overlapped || r.overlap
	}
	switch {
	case len(found) == 0 && slices.ContainsFunc(p.Comms, func(c workload.Comm) bool {
		return c.Kind == workload.FSDP
	}):
		return nil,
			&VariantError{setting,
				"the recording is of FSDP, which reduces gradients unit by unit and has no buckets", ofFSDP}
	case len(found) == 0:
		return nil, &VariantError{setting,
			"the recording has no all_reduce of gradients: none is of a data " +
				"parallel group and beside other work",
			"give a recording of DDP, or make one with workload gen --dp"}
	case !overlapped && !s.NoSync:
		return nil,
			&VariantError{setting,
				"gradients are reduced in one call after the backward pass, so there are no buckets",
				"give a recording of DDP, or make one with workload gen --dp"}
	}
	guessed := false
	for _, r := range found {
		if !r.overlap && !s.NoSync {
			continue
		}
		g := &regroup{p: p, spec: s, comm: r.comm, calls: callTable{p, len(p.Calls)}}
		for _, rank := range members(p, r.comm) {
			if err := g.list(int(rank)); err != nil {
				return nil, err
			}
		}
		guessed = guessed || g.guessed
	}
	if guessed {
		notes = append(notes, "the recording does not show when each gradient is ready; gradients of a "+
			"bucket become ready evenly over the computations before it")
	}
	return notes, nil
}

// reducers returns the communicators that reduce gradients: data parallel ones, and communicators of unknown
// kind whose all_reduces no computation waits for at once, or that have one per iteration.
func reducers(p *workload.Program) (out []reducer) {
	for i := range p.Comms {
		if k := p.Comms[i].Kind; k != workload.DP && k != workload.NoKind || p.Comms[i].Size(p.Ranks()) < 2 {
			continue
		}
		list := int(p.Comms[i].Rank(0))
		most, beside := 0, true
		for _, in := range intervals(p, list) {
			at := reductions(p, list, in, i)
			most = max(most, len(at))
			for k := 0; k+1 < len(at); k++ {
				beside = beside && !awaited(p.Lists[list].Steps, at[k], in.hi)
			}
		}
		if most > 1 && !beside && p.Comms[i].Kind == workload.NoKind {
			continue
		}
		if most > 0 {
			out = append(out, reducer{i, most > 1 && beside || most == 1 && alone(p, list, i)})
		}
	}
	return out
}

// alone reports whether the only all_reduce of an iteration runs on its own stream, as that of a single
// bucket with all gradients.
func alone(p *workload.Program, list, comm int) bool {
	steps := p.Lists[list].Steps
	for _, in := range intervals(p, list) {
		for _, i := range reductions(p, list, in, comm) {
			for k := in.lo; k < in.hi; k++ {
				if onGPU(&steps[k]) && steps[k].Stream == steps[i].Stream {
					return false
				}
			}
		}
	}
	return true
}

// reductions returns the all_reduces of a communicator in an iteration.
func reductions(p *workload.Program, list int, in interval, comm int) (out []int) {
	for i := in.lo; i < in.hi; i++ {
		s := &p.Lists[list].Steps[i]
		if s.Kind == workload.Issue && int(p.Calls[s.Call].Comm) == comm &&
			p.Calls[s.Call].Func == coll.AllReduce {
			out = append(out, i)
		}
	}
	return out
}

// awaited reports whether the next computation on the GPU waits for a step.
func awaited(steps []workload.Step, i, hi int) bool {
	for k := i + 1; k < hi; k++ {
		if onGPU(&steps[k]) {
			return steps[k].Stream == steps[i].Stream || slices.Contains(steps[k].Deps, int32(i))
		}
	}
	return false
}

// regroup changes the buckets of one communicator.
type regroup struct {
	p       *workload.Program
	spec    Variant
	comm    int
	calls   callTable
	guessed bool
	sizes   [][]int64 // by iteration: the new buckets of the first member
}

// list rewrites one rank's list with other buckets of gradients.
func (g *regroup) list(rank int) error {
	src := g.p.Lists[rank].Steps
	w := newRewriter(src)
	done := 0
	for n, in := range intervals(g.p, rank) {
		for ; done < in.lo; done++ {
			w.copy(done)
		}
		old := g.recorded(src, rank, in)
		if g.spec.NoSync {
			g.without(w, in, old)
		} else if err := g.again(w, in, old, n, rank); err != nil {
			return err
		}
		done = in.hi
	}
	for ; done < len(src); done++ {
		w.copy(done)
	}
	w.finish(g.p, rank, w.following)
	return nil
}

// recorded returns the buckets of an iteration with their gradients.
func (g *regroup) recorded(src []workload.Step, rank int, in interval) (out []bucket) {
	from := in.lo
	for _, at := range reductions(g.p, rank, in, g.comm) {
		out = append(out, bucket{step: at, grains: g.grains(src, from, at)})
		from = at + 1
	}
	return out
}

// grains returns the gradients of a bucket. DDP copies each gradient into the bucket with its own kernel,
// which also divides by the number of ranks; the grids of these kernels are proportional to the gradients'
// sizes.
func (g *regroup) grains(src []workload.Step, from, at int) (out []grain) {
	family := ""
	for _, d := range src[at].Deps {
		if onGPU(&src[d]) {
			family = g.family(&src[d])
		}
	}
	count := g.p.Calls[src[at].Call].Count
	if family == "" {
		return nil
	}
	blocks := int64(0)
	for i := from; i < at; i++ {
		if s := &src[i]; onGPU(s) && g.family(s) == family {
			b := int64(g.p.Works[s.Work-1].Blocks)
			out = append(out, grain{i, b})
			blocks += b
		}
	}
	if blocks == 0 {
		return nil
	}
	left := count
	for i := range out {
		n := int64(float64(count) * float64(out[i].elements) / float64(blocks))
		if i == len(out)-1 {
			n = left
		}
		out[i].elements = n
		left -= n
	}
	return out
}

// family returns the common part of the names of kernels that copy gradients into buckets; empty for other
// steps.
func (g *regroup) family(s *workload.Step) string {
	if s.Work == 0 {
		return ""
	}
	name := g.p.Works[s.Work-1].Name
	if !strings.Contains(name, "elementwise") || !strings.Contains(name, "MulFunctor") &&
		!strings.Contains(name, "DivFunctor") && !strings.Contains(name, "copy_kernel") {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// without leaves the reductions of an iteration out, and the copies into buckets.
func (g *regroup) without(w *rewriter, in interval, old []bucket) {
	removed := map[int]bool{}
	for _, b := range old {
		removed[b.step] = true
		for _, x := range b.grains {
			removed[x.step] = true
		}
	}
	for i := in.lo; i < in.hi; i++ {
		if removed[i] {
			w.drop(i)
		} else {
			w.copy(i)
		}
	}
}

// again writes an iteration with other buckets. PyTorch fills buckets with gradients in the order in which
// they become ready and closes one as soon as it reaches its capacity (compute_bucket_assignment_by_size,
// torch/csrc/distributed/c10d/reducer.cpp).
func (g *regroup) again(w *rewriter, in interval, old []bucket, n, rank int) error {
	if len(old) == 0 {
		return nil
	}
	size := g.p.Calls[w.src[old[0].step].Call].Type.Size()
	ready := map[int][]int64{} // elements of gradients by the step after which they are ready
	left := int64(0)
	for i := range old {
		if old[i].grains == nil {
			from := in.lo
			if i > 0 {
				from = old[i-1].step + 1
			}
			old[i].grains = g.even(w.src, from, old[i].step, size)
			g.guessed = true
		}
		for _, x := range old[i].grains {
			ready[x.step] = append(ready[x.step], x.elements)
			left += x.elements
		}
	}
	limit := g.spec.Bucket
	if g.spec.FirstBucket > 0 {
		limit = g.spec.FirstBucket
	}
	is := map[int]bool{}
	for _, b := range old {
		is[b.step] = true
	}
	var sizes []int64
	held, last := int64(0), int32(-1)
	call := g.p.Calls[w.src[old[0].step].Call]
	stream := w.src[old[0].step].Stream
	for i := in.lo; i < in.hi; i++ {
		if is[i] {
			w.via[i] = nil
			if last >= 0 {
				w.via[i] = []int32{last}
			}
			continue
		}
		for _, d := range w.src[i].Deps {
			if is[int(d)] && left+held > 0 {
				return &VariantError{"bucket",
					fmt.Sprintf("rank %d waits for a reduction before all gradients are ready (step %d)",
						rank, i), "the all_reduces of this recording are no buckets of DDP"}
			}
			if is[int(d)] {
				w.via[d] = []int32{last}
			}
		}
		at := w.copy(i)
		for _, x := range ready[i] {
			held, left = held+x, left-x
			if units.Bytes(held)*size < limit && left > 0 {
				continue
			}
			call.Count, call.Recorded = held, 0
			deps := []int32{at}
			if w.host >= 0 {
				deps = append(deps, w.host)
			}
			last = w.add(workload.Step{Kind: workload.Issue, Stream: stream, Call: g.calls.add(call),
				Deps: deps})
			sizes = append(sizes, held)
			held, limit = 0, g.spec.Bucket
		}
	}
	return g.agree(sizes, n, rank)
}

// even divides a bucket into pieces that become ready as computations end, in proportion to the computations'
// times.
func (g *regroup) even(src []workload.Step, from, at int, size units.Bytes) (out []grain) {
	total := units.Time(0)
	for i := from; i < at; i++ {
		if onGPU(&src[i]) {
			total += src[i].Time
		}
	}
	count := g.p.Calls[src[at].Call].Count
	if total == 0 {
		return []grain{{max(at-1, 0), count}}
	}
	pieces := min(max(int64(units.Bytes(count)*size/g.spec.Bucket), 1), 1024)
	done, k := units.Time(0), int64(0)
	for i := from; i < at; i++ {
		if !onGPU(&src[i]) {
			continue
		}
		done += src[i].Time
		reached := int64(float64(pieces) * float64(done) / float64(total))
		if done == total {
			reached = pieces
		}
		for ; k < reached; k++ {
			out = append(out, grain{i, count*(k+1)/pieces - count*k/pieces})
		}
	}
	return out
}

// agree returns an error unless all members have equal buckets.
func (g *regroup) agree(sizes []int64, n, rank int) error {
	if n == len(g.sizes) {
		g.sizes = append(g.sizes, sizes)
	}
	if !slices.Equal(sizes, g.sizes[n]) {
		return &VariantError{"bucket",
			fmt.Sprintf("gradients of rank %d become ready in another order than those of the first rank "+
				"of %s", rank, g.p.Comms[g.comm].Name),
			"give recordings in which all ranks have the same model"}
	}
	return nil
}
