package main

import (
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// dump writes the files that NCCL would write at its start: the fused topology
// (NCCL_TOPO_DUMP_FILE) and the graphs (NCCL_GRAPH_DUMP_FILE), of rank 0.
func (m *machine) dump(a *app) error {
	host := m.cluster.Host(0)
	if v := m.cfg.Text("NCCL_TOPO_DUMP_FILE"); v.Value != "" && host.Dump != nil {
		if err := newfile.Write(a.path(v.Value), topoxml.Write(host.Dump)); err != nil {
			return err
		}
	}
	v := m.cfg.Text("NCCL_GRAPH_DUMP_FILE")
	if v.Value == "" {
		return nil
	}
	graphs := m.comm.Domains[0].Graphs
	for _, g := range graphs {
		if g != nil && g.NChannels > 0 && (g.TypeIntra == topo.PathC2C || g.TypeInter == topo.PathC2C) {
			a.warn("NCCL_GRAPH_DUMP_FILE=%s: NCCL %s would fail to start, for it has no word for the C2C paths of the %s graph (search.cc:818); they are written as C2C here",
				v.Value, m.cfg.Rules.Version(), g.Name)
			break
		}
	}
	text, err := topoxml.WriteGraphs(host.Systems[0], graphs)
	if err != nil {
		return err
	}
	return newfile.Write(a.path(v.Value), text)
}
