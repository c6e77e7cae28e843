package engine

import (
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// Count walks the programs without a clock and reports what each op carries over
// which route, in nano-bytes. Where there are more than about limit ops it takes
// the first ones of each program for all of its ops.
func (e *Engine) Count(limit int64, add func(r wire.RouteID, work float64)) {
	e.walk(limit, func(g *Group, times float64) { add(g.Route, e.carried(g)*times) },
		func(at int32, bytes units.Bytes, times float64) {
			e.Net.Count(at, bytes, func(r wire.RouteID, work float64) { add(r, work*times) })
		})
}

// CountMessages is Count of what goes from host to host: bytes by connection of the
// network, in Net.Conns.
func (e *Engine) CountMessages(limit int64, add func(at int32, bytes float64)) {
	e.walk(limit, func(*Group, float64) {}, func(at int32, bytes units.Bytes, times float64) {
		add(at, float64(bytes)*times)
	})
}

// walk calls op for each op of each program, and send for each connection of the network
// that it sends over; times is how many ops of its program one represents.
func (e *Engine) walk(limit int64, op func(g *Group, times float64), send func(at int32, bytes units.Bytes,
	times float64)) {
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
			op(g, times)
			for _, id := range g.Op.To {
				if at := e.Conns[id].Net; at >= 0 {
					send(at, g.Op.Bytes, times)
				}
			}
		}
	}
}
