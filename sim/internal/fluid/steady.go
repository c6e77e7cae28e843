package fluid

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

var _ wire.Steady = (*Fluid)(nil)

// AppendState implements wire.Steady: bundles that have flows, and the work that
// each flow has left. Rates follow from who is there; which links are tight is
// bookkeeping that no rate depends on. Work is done in integers, so what is left
// does not depend on when it was last settled.
func (f *Fluid) AppendState(dst []int64, now units.Time) []int64 {
	f.scratch = append(f.scratch[:0], f.order...)
	slices.Sort(f.scratch)
	for _, bi := range f.scratch {
		b := &f.bundles[bi]
		dst = append(dst, int64(bi), int64(b.rate), int64(len(b.heap)))
		done := b.done + wire.Work(b.rate)*wire.Work(now-b.last)
		f.sorted = append(f.sorted[:0], b.heap...)
		slices.SortFunc(f.sorted, func(x, y entry) int { return cmp.Or(cmp.Compare(x.target, y.target), cmp.Compare(x.seq, y.seq)) })
		for _, e := range f.sorted {
			fl := &f.flows[e.flow]
			dst = append(dst, int64(e.target-done), int64(fl.token), int64(fl.mult))
		}
	}
	return dst
}

// AppendCounts implements wire.Steady: bytes, nano-bytes and busy time by link.
func (f *Fluid) AppendCounts(dst []int64, now units.Time) []int64 {
	for i := range f.links {
		l := &f.links[i]
		busy := l.busy
		if l.flows > 0 {
			busy += now - l.since
		}
		dst = append(dst, int64(l.bytes), int64(l.nano), int64(busy))
	}
	return dst
}

// AddCounts implements wire.Steady.
func (f *Fluid) AddCounts(delta []int64, times int64) {
	for i := range f.links {
		l, d := &f.links[i], delta[3*i:]
		l.bytes += units.Bytes(d[0] * times)
		l.nano += wire.Work(d[1] * times)
		l.busy += units.Time(d[2] * times)
		whole := l.nano / wire.NanoBytes
		if l.nano%wire.NanoBytes < 0 {
			whole--
		}
		l.bytes += units.Bytes(whole)
		l.nano -= whole * wire.NanoBytes
	}
}
