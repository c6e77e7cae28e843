package fluid

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

var _ wire.Steady = (*Fluid)(nil)

// AppendState implements wire.Steady: bundles that have flows, the work that each
// flow has left, and the levels of links. Work is done in integers, so what is
// left does not depend on when it was last settled.
func (f *Fluid) AppendState(dst []int64, now units.Time) []int64 {
	f.active = f.active[:0]
	for _, d := range f.order {
		f.active = append(f.active, d.bundle)
	}
	slices.Sort(f.active)
	for _, bi := range f.active {
		b, rate := &f.bundles[bi], f.shares[bi].rate
		dst = append(dst, int64(bi), int64(rate), int64(len(b.heap)))
		done := b.done + wire.Work(rate)*wire.Work(now-b.last)
		f.sorted = append(f.sorted[:0], b.heap...)
		slices.SortFunc(f.sorted, func(x, y entry) int { return cmp.Or(cmp.Compare(x.target, y.target), cmp.Compare(x.seq, y.seq)) })
		for _, e := range f.sorted {
			fl := &f.flows[e.flow]
			dst = append(dst, int64(e.target-done), int64(fl.token), int64(fl.mult))
		}
	}
	for i := range f.links {
		if l := &f.links[i]; l.flows > 0 {
			dst = append(dst, int64(i), int64(l.level), int64(l.rest))
		}
	}
	return dst
}

// AppendCounts implements wire.Steady: the busy time of links, then bytes and
// nano-bytes by route.
func (f *Fluid) AppendCounts(dst []int64, now units.Time) []int64 {
	for i := range f.links {
		l := &f.links[i]
		busy := l.busy
		if l.flows > 0 {
			busy += now - l.since
		}
		dst = append(dst, int64(busy))
	}
	for i := range f.routes {
		dst = append(dst, int64(f.routes[i].bytes), int64(f.routes[i].nano))
	}
	return dst
}

// AddCounts implements wire.Steady.
func (f *Fluid) AddCounts(delta []int64, times int64) {
	for i := range f.links {
		f.links[i].busy += units.Time(delta[i] * times)
	}
	for i := range f.routes {
		r, d := &f.routes[i], delta[len(f.links)+2*i:]
		r.bytes += units.Bytes(d[0] * times)
		r.nano += wire.Work(d[1] * times)
		whole := r.nano / wire.NanoBytes
		if r.nano%wire.NanoBytes < 0 {
			whole--
		}
		r.bytes += units.Bytes(whole)
		r.nano -= whole * wire.NanoBytes
	}
}
