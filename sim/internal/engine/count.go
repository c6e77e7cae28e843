package engine

import "github.com/simccl/simccl/sim/wire"

// Count walks the programs without a clock and reports what each op carries over
// which route, in nano-bytes. Where there are more than about limit ops it takes
// the first ones of each program for all of its ops.
func (e *Engine) Count(limit int64, add func(r wire.RouteID, work float64)) {
	each := max(64, limit/max(1, int64(len(e.Groups))))
	for gi := range e.Groups {
		g := &e.Groups[gi]
		g.Job.Plan.OpenInto(&g.cur, &g.Program)
		times := 1.0
		if n := g.Job.Plan.NumOps(&g.Program); n > each {
			times = float64(n) / float64(each)
		}
		for range each {
			if !e.fetch(g) {
				break
			}
			g.Bytes = g.Op.Bytes
			add(g.Route, e.carried(g)*times)
			for _, id := range g.Op.To {
				if at := e.Conns[id].Net; at >= 0 {
					e.Net.Count(at, g.Op.Bytes, func(r wire.RouteID, work float64) { add(r, work*times) })
				}
			}
		}
	}
}
