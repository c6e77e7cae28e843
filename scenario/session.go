package scenario

import (
	"github.com/simccl/simccl/internal/session"
	"github.com/simccl/simccl/units"
)

// Session is where jobs of several communicators run on a loaded machine: what
// spec says of engine, network and seed.
func (m *Site) Session(spec *Spec) (*session.Machine, error) {
	cfg, err := m.SimConfig(spec)
	if err != nil {
		return nil, err
	}
	p := m.Config.Topo
	if k := spec.Machine.GPUs; k > 0 {
		p.GPUs = units.Some(k)
	}
	return &session.Machine{Cluster: m.Cluster, Topo: p, Params: m.Comm.Params, Sim: cfg, World: m.Comm}, nil
}
