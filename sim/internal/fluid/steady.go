package fluid

import (
	"slices"

	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

var _ wire.Steady = (*Fluid)(nil)

// AppendState implements wire.Steady: by bundle its rate and the work left of each flow, then the levels of
// busy links. Work is an integer, so what is left does not depend on when it was last settled.
func (f *Fluid) AppendState(dst []int64, now units.Time) []int64 {
	was := f.now
	f.now, f.sorted = now, f.sorted[:0]
	for _, d := range f.order {
		if d.flow >= 0 {
			f.sorted = append(f.sorted, f.asEnded(d.flow))
			continue
		}
		for _, e := range f.bundles[d.bundle].heap {
			f.sorted = append(f.sorted, f.asEnded(e.flow))
		}
	}
	for id := range f.flows {
		if fl := &f.flows[id]; fl.own >= 0 && fl.in == timed {
			f.sorted = append(f.sorted, f.asEnded(wire.FlowID(id)))
		}
	}
	f.now = was
	slices.SortFunc(f.sorted, ended.compare)
	for rest := f.sorted; len(rest) > 0; {
		own, n := rest[0].own, 1
		for n < len(rest) && rest[n].own == own {
			n++
		}
		dst = append(dst, int64(own), int64(f.rate(rest[0].id)), int64(n))
		for _, e := range rest[:n] {
			dst = append(dst, int64(e.left), int64(f.flows[e.id].token), int64(f.flows[e.id].mult))
		}
		rest = rest[n:]
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
