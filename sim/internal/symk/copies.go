package symk

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/sym"
)

// Copies times a collective by copy engines. Errors as Kernel.
func (m *Machine) Copies(p *sym.Copies) (Time, error) {
	w := m.newTraffic()
	n := int32(m.Comm.NRanks)
	for src := range n {
		for dst := range n {
			if src == dst || p.Func == coll.Scatter && src != p.Root || p.Func == coll.Gather &&
				dst != p.Root {
				continue
			}
			if err := w.between(src, dst, 0, float64(p.Each)); err != nil {
				return Time{}, err
			}
		}
	}
	return Time{Gap: float64(p.Barriers) * m.Class.Copy.Barrier, Busy: m.Class.CopyTime(p.Peers, p.Own,
		p.Each, p.Batch, w.fullest()), Links: w.loads()}, nil
}
