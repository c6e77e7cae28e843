package comm

import (
	"fmt"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
)

// noNVLSGraph names the GPU that prevents a graph for NVLS: the switch must reach every GPU and every GPU the
// switch by NVLink, at one rate (search.cc:386-419, ncclTopoSearchTryNvls).
func (c *Comm) noNVLSGraph() tuning.Reason {
	r := tuning.Reason{Rule: "no NVLS graph was found", At: rules.AtNVLSTry}
	for i := range c.Domains {
		d := &c.Domains[i]
		if g := d.Graphs[search.NVLSID]; g != nil && g.NChannels > 0 {
			continue
		}
		s := d.System
		if len(s.Of(topo.NVS)) == 0 {
			return tuning.Reason{Rule: fmt.Sprintf("node %d has no NVSwitch", i), At: rules.AtNVLSSwitch}
		}
		if len(s.Of(topo.GPU)) < 2 {
			return tuning.Reason{Rule: "NVLS needs two GPUs on each node, and " + c.named(i, s.Of(topo.GPU)) +
				fmt.Sprintf(" node %d for itself", i), At: rules.AtNVLSEnable}
		}
		nvs := s.Of(topo.NVS)[0]
		far := gpusWhere(s, func(g topo.NodeID) bool {
			return s.Path(g, nvs).Kind > topo.PathNVL || s.Path(nvs, g).Kind > topo.PathNVL
		})
		if len(far) > 0 {
			r.Rule += ": it needs every GPU behind the NVSwitch, and " + c.named(i, far) + " no NVLink to it"
			return r
		}
		least := s.Of(topo.GPU)[0]
		for _, g := range s.Of(topo.GPU) {
			if s.Path(g, nvs).BW < s.Path(least, nvs).BW {
				least = g
			}
		}
		r.Rule += fmt.Sprintf(": the slowest GPU behind the NVSwitch is GPU %d of node %d with %.4g GB/s",
			s.Nodes[least].GPU.Rank, i, float32(s.Path(least, nvs).BW))
		return r
	}
	return r
}

// SplitWarning warns of a host, or NVLink domain, whose GPUs NCCL treats as several nodes, and names the GPUs
// that are separate from the first; "" if there is none.
func (c *Comm) SplitWarning() string {
	for i := 1; i < len(c.Domains); i++ {
		if c.HostOf[c.Domains[i].First] != c.HostOf[c.Domains[i-1].First] {
			continue
		}
		from, n := i-1, 2
		for from+n < len(c.Domains) && c.HostOf[c.Domains[from+n].First] == c.HostOf[c.Domains[i].First] {
			n++
		}
		apart := gpusWhere(c.Domains[i].System, func(topo.NodeID) bool { return true })
		where := ""
		if s := c.Params.Rules.Cite(rules.AtSplitHost); s != "" {
			where = " (" + s + ")"
		}
		return fmt.Sprintf("NCCL takes the GPUs of node%d for %d nodes%s: %s neither P2P nor SHM with a GPU "+
			"before in the order of ranks", c.HostOf[c.Domains[i].First], n, where, c.named(i, apart))
	}
	return ""
}

// RingWarning warns of a node for which NCCL found no ring, and names the GPUs with worse connections than
// the others; "" if there are rings.
func (c *Comm) RingWarning() string {
	for i := range c.Domains {
		d := &c.Domains[i]
		g := d.Graphs[search.RingID]
		if g == nil || g.NChannels != 1 || g.BWIntra > 0.1 || len(d.System.Of(topo.GPU)) < 2 {
			continue
		}
		w := fmt.Sprintf("NCCL found no ring for node %d and takes its GPUs in order on one channel of 0.1 "+
			"GB/s", i)
		s := d.System
		kinds, count := map[topo.NodeID]topo.PathKind{}, map[topo.PathKind]int{}
		usual := topo.PathDIS
		for _, a := range s.Of(topo.GPU) {
			best := topo.PathDIS
			for _, b := range s.Of(topo.GPU) {
				if a != b {
					best = min(best, s.Path(a, b).Kind)
				}
			}
			kinds[a] = best
			if count[best]++; count[best] > count[usual] {
				usual = best
			}
		}
		if far := gpusWhere(s, func(g topo.NodeID) bool { return kinds[g] > usual }); len(far) > 0 {
			return w + fmt.Sprintf(": %s no path to another GPU better than %v, where the others have %v",
				c.named(i, far), kinds[far[0]], usual)
		}
		return w
	}
	return ""
}

// gpusWhere lists the GPUs of a System for which is returns true, by rank.
func gpusWhere(s *topo.System, is func(topo.NodeID) bool) (out []topo.NodeID) {
	byRank := make([]topo.NodeID, len(s.Of(topo.GPU)))
	for i := range byRank {
		byRank[i] = topo.None
	}
	for _, g := range s.Of(topo.GPU) {
		if r := s.Nodes[g].GPU.Rank; r < len(byRank) {
			byRank[r] = g
		} else {
			byRank = append(byRank, g)
		}
	}
	for _, g := range byRank {
		if g != topo.None && is(g) {
			out = append(out, g)
		}
	}
	return out
}

// named formats GPUs as the subject of "no NVLink": "rank 6 (GPU 2 of host 1, 0008:01:00.0) has".
func (c *Comm) named(domain int, gpus []topo.NodeID) string {
	d := &c.Domains[domain]
	g := d.System.Nodes[gpus[0]].GPU
	host := c.HostOf[d.First]
	at := fmt.Sprintf("node %d", host)
	if d.System.NHosts > 1 {
		at = fmt.Sprintf("host %d of the NVLink domain", g.Host)
	}
	text := fmt.Sprintf("rank %d (GPU %d of %s, %s) has", int(d.First)+g.Rank, g.Dev, at, g.BusID)
	if n := len(gpus) - 1; n > 0 {
		text = fmt.Sprintf("rank %d (GPU %d of %s, %s) and %d more have", int(d.First)+g.Rank, g.Dev, at,
			g.BusID, n)
	}
	return text
}
