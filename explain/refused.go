package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// Refusal is one rule that kept pairs from a path.
type Refusal struct {
	What    string   `json:"what"` // "P2P", "SHM", "GDR", "PXN"
	Rule    string   `json:"rule"`
	Setting string   `json:"setting,omitempty"`
	Source  string   `json:"source,omitempty"`
	Pairs   []string `json:"pairs"` // "GPU 0 -> GPU 4", in the topology's order
}

// refusals gathers the verdicts of all different Systems, equal ones together.
func refusals(c *comm.Comm, a topo.Access) []Refusal {
	var out []Refusal
	type rule struct {
		what, reason, setting string
		at                    rules.Place
	}
	at := map[rule]int{}
	type pairOf struct {
		refusal int
		pair    string
	}
	seen := map[pairOf]bool{}
	plain := plainer{}
	add := func(s *topo.System, v topo.Verdict) {
		if s.Nodes[v.To].Kind == topo.NET && !s.Inter {
			return // no net is used
		}
		v.Reason = plain.text(s, v.Reason)
		if v.What == "P2P" && a.P2PLevel.Set {
			v.Setting += ", without NCCL_P2P_DISABLE"
		}
		key := rule{v.What, v.Reason, v.Setting, v.At}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Refusal{What: v.What, Rule: v.Reason, Setting: v.Setting,
				Source: c.Params.Rules.Cite(v.At)})
		}
		pair := nodeName(s, v.From) + " -> " + nodeName(s, v.To)
		if seen[pairOf{i, pair}] {
			return
		}
		seen[pairOf{i, pair}] = true
		out[i].Pairs = append(out[i].Pairs, pair)
	}
	for _, d := range different(c) {
		for _, v := range d.System.Verdicts {
			add(d.System, v)
		}
		for _, v := range usedNets(d.System, d.Graphs[search.RingID], a) {
			add(d.System, v)
		}
	}
	return out
}

// usedNets requires GPUDirect on the connections that the rings use, where the
// System itself did not judge: it asks only for near nets.
func usedNets(s *topo.System, g *search.Graph, a topo.Access) []topo.Verdict {
	if g == nil || !s.Inter {
		return nil
	}
	var out []topo.Verdict
	ask := func(local int, net uint64, read bool) {
		n, gpu := netOf(s, net), gpuOf(s, local)
		if n == topo.None || gpu == topo.None {
			return
		}
		if ok, why := s.GDR(gpu, n, read, &a); !ok && why != nil {
			v := *why
			if read {
				v.Reason += " (sending)"
			}
			out = append(out, v)
		}
	}
	for c, order := range g.Intra {
		if len(order) == 0 || c >= len(g.Inter) {
			continue
		}
		ask(order[0], g.Inter[c][0], false)
		ask(order[len(order)-1], g.Inter[c][1], true)
	}
	return out
}

// different lists one domain per System.
func different(c *comm.Comm) []domain {
	var out []domain
	for i := range c.Domains {
		d := &c.Domains[i]
		if !slices.ContainsFunc(out, func(o domain) bool { return o.System == d.System }) {
			out = append(out, domain{d.System, d.Graphs})
		}
	}
	return out
}

type domain struct {
	System *topo.System
	Graphs search.Set
}

func netOf(s *topo.System, ident uint64) topo.NodeID {
	for _, n := range s.Of(topo.NET) {
		if s.Nodes[n].Ident == ident {
			return n
		}
	}
	return topo.None
}

func gpuOf(s *topo.System, local int) topo.NodeID {
	for _, n := range s.Of(topo.GPU) {
		if s.Nodes[n].GPU.Rank == local {
			return n
		}
	}
	return topo.None
}

// plainer puts nodeName's names of GPUs in place of NCCL's. A verdict is given for
// each pair of GPUs, so it lists the names of a System once.
type plainer struct {
	sys  *topo.System
	name map[string]string
}

func (p *plainer) text(s *topo.System, text string) string {
	if p.sys != s {
		p.sys, p.name = s, map[string]string{}
		for _, g := range s.Of(topo.GPU) {
			if _, ok := p.name[s.Name(g)]; !ok {
				p.name[s.Name(g)] = nodeName(s, g)
			}
		}
	}
	words := strings.Fields(text)
	for i, w := range words {
		name := strings.TrimRight(w, ",;.")
		if plain, ok := p.name[name]; ok {
			words[i] = plain + w[len(name):]
		}
	}
	return strings.Join(words, " ")
}

// nodeName is a node's name for people: GPUs by local rank, nets by name, the
// rest by kind and PCI address.
func nodeName(s *topo.System, id topo.NodeID) string {
	n := &s.Nodes[id]
	low := n.Ident & (1<<56 - 1)
	host := ""
	if s.NHosts > 1 {
		host = fmt.Sprintf(" of host %d", n.Ident>>56)
	}
	switch n.Kind {
	case topo.GPU:
		return fmt.Sprintf("GPU %d", n.GPU.Rank)
	case topo.NET:
		if n.Net.Name != "" {
			return "net " + n.Net.Name + host
		}
		return fmt.Sprintf("net %d%s", n.Net.Dev, host)
	case topo.NVS:
		return "NVSwitch" + host
	case topo.CPU:
		return fmt.Sprintf("CPU %d%s", n.CPU.NUMA, host)
	case topo.NIC:
		return "NIC " + pciName(low) + host
	}
	return "PCI " + pciName(low) + host
}

// pciName writes NCCL's number of a PCI address as one.
func pciName(id uint64) string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", id>>20&0xffff, id>>12&0xff, id>>4&0xff, id&0xf)
}
