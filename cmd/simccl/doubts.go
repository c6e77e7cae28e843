package main

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/lint"
)

// lintParams are the settings that topo lint looks with: as one of several
// nodes, so that nets count.
func lintParams(cfg *config.Config) topo.Params {
	p := cfg.Topo
	p.NRanks = 1 << 16
	return p
}

// lintLine says in one line how many errors and warnings topo lint finds in a
// file, and names the places of GPUs that were left out. What the parser
// complained of was printed before and alone makes no line.
func (a *app) lintLine(spec *topo.Spec, cfg *config.Config) {
	errs, warns, news := 0, 0, 0
	for _, f := range lint.Check(spec, lintParams(cfg)) {
		switch f.Severity {
		case lint.Error:
			errs++
		case lint.Warning:
			warns++
		default:
			continue
		}
		if f.Rule != "parser" {
			news++
		}
		if f.Rule == lint.LeftOut {
			a.warn("%s: %s", f.Pos, f.Problem)
		}
	}
	if news == 0 {
		return
	}
	var parts []string
	if errs > 0 {
		parts = append(parts, numbered(errs, "error"))
	}
	if warns > 0 {
		parts = append(parts, numbered(warns, "warning"))
	}
	fmt.Fprintf(a.err, "topo lint: %s (simccl topo lint %s)\n", strings.Join(parts, ", "), spec.Name)
}

// peersOf tells whether hosts would disagree on the channels of send/recv as
// nodes of one job, "" where they would not or make no communicator.
func peersOf(specs []*topo.Spec, cfg *config.Config) string {
	var members []fabric.Member
	for _, s := range specs {
		members = append(members, fabric.Member{Spec: s, Count: 1})
	}
	if len(members) < 2 {
		return ""
	}
	cluster, err := fabric.New(members, cfg.Topo)
	if err != nil {
		return ""
	}
	c, err := comm.New(cluster, cfg.Comm())
	if err != nil {
		return ""
	}
	return explain.PeerChannels(c)
}

// numbered writes a number with its noun.
func numbered(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// lintMembers says of each file once what topo lint finds.
func (a *app) lintMembers(members []fabric.Member, cfg *config.Config) {
	seen := map[string]bool{}
	for _, m := range members {
		if !seen[m.Spec.Name] {
			a.lintLine(m.Spec, cfg)
		}
		seen[m.Spec.Name] = true
	}
}

// idleFilters warns of entries of a filter that match nothing, where the
// machine shows what there is.
func (m *machine) idleFilters(a *app, members []fabric.Member) {
	warn := func(name, text string, entries, there []string) {
		if len(entries) == 0 {
			return
		}
		v := m.cfg.Value(name)
		a.warn("%s=%s (%s): %s matches nothing; there are %s", name, text, v.Origin, strings.Join(entries, ", "), some(there))
	}
	if v := m.cfg.Text("NCCL_IB_HCA"); v.Value != "" {
		var specs []*topo.Spec
		for _, x := range members {
			specs = append(specs, x.Spec)
		}
		entries, there := topo.UnmatchedHCAs(specs, v.Value)
		warn("NCCL_IB_HCA", v.Value, entries, there)
	}
	if v := m.cfg.Text("NCCL_SOCKET_IFNAME"); v.Value != "" {
		var systems []*topo.System
		for i := range m.cluster.Classes {
			systems = append(systems, m.cluster.Classes[i].Host.Systems...)
		}
		entries, there := topo.UnmatchedInterfaces(systems, v.Value)
		warn("NCCL_SOCKET_IFNAME", v.Value, entries, there)
	}
}

// some lists the first names of many.
func some(names []string) string {
	const shown = 16
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}
