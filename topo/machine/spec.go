// Package machine describes a machine by the figures of a data sheet (CPUs, PCIe switches, GPUs, NVLink,
// NICs) and generates the tree of elements that NCCL would find on it. It contains no rule of NCCL.
//
// What it must not know: files, decisions, times.
package machine

import (
	"fmt"

	"github.com/simccl/simccl/internal/jsonfile"
)

// Spec is one host of a machine, and what is known of the network around it.
//
// Groups are PCIe subtrees in the order of the file; GPUs and NICs are numbered
// as they appear. A Spec of two sockets with four GPUs each, one PCIe switch for
// every GPU and its NIC:
//
//	{"name": "mine", "cpu": "sapphire-rapids", "gpu": {"kind": "h100-sxm"}, "nic": {"kind": "connectx-7"},
//	 "nvlink": {"switch": true}, "numa": [{"cores": "0-47"}, {"id": 1, "cores": "48-95"}],
//	 "groups": [{"numa": 0, "switches": ["broadcom-gen5"], "gpus": 1, "nics": 1, "times": 4},
//	            {"numa": 1, "switches": ["broadcom-gen5"], "gpus": 1, "nics": 1, "times": 4}]}
type Spec struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	Title   string   `json:"title,omitempty"`
	CPU     string   `json:"cpu"` // kind, of CPUs
	NUMA    []NUMA   `json:"numa"`
	GPU     GPU      `json:"gpu"`
	NVLink  NVLink   `json:"nvlink"`
	NIC     NIC      `json:"nic"`
	Groups  []Group  `json:"groups"`
	// Domain is the number of such hosts in one NVLink domain; 0 and 1: no domain.
	Domain  int     `json:"domain,omitempty"`
	Network Network `json:"network"`
	// Facts lists the source of each part of the Spec.
	Facts []Fact `json:"facts,omitempty"`
}

// NUMA is one NUMA node of the host, -1 where the host names none. Cores is a list of
// ranges ("0-47,96-143"); empty leaves the affinity out.
type NUMA struct {
	ID    int    `json:"id"`
	Cores string `json:"cores,omitempty"`
}

// GPU is the kind of all GPUs. NoGDR disables GPUDirect RDMA. PCIe replaces the kind's own link: "4x16" is
// generation 4 with 16 lanes, "unknown" a VM that does not report it. Devs lists the GPUs' numbers in the
// order of the file, if they are not 0, 1, 2, ….
type GPU struct {
	Kind  string `json:"kind"`
	NoGDR bool   `json:"noGDR,omitempty"`
	PCIe  string `json:"pcie,omitempty"`
	Devs  []int  `json:"devs,omitempty"`
}

// NVLink describes the NVLinks of each GPU. They lead to NVSwitches (Switch; Counts has the links to each
// visible NVSwitch, empty means one virtual target) or to other GPUs (Mesh links to each other GPU, or Pairs
// of {GPU, GPU, links}). Links replaces the kind's number of links; Each lists it by GPU if GPUs differ (0:
// none works).
type NVLink struct {
	Switch bool     `json:"switch,omitempty"`
	Links  int      `json:"links,omitempty"`
	Each   []int    `json:"each,omitempty"`
	Counts []int    `json:"counts,omitempty"`
	Bus    []string `json:"bus,omitempty"` // bus ids of the visible NVSwitches
	Mesh   int      `json:"mesh,omitempty"`
	Pairs  [][3]int `json:"pairs,omitempty"`
}

// NIC is the kind of all NICs; members that are zero have the kind's values. Speed is in Mb/s per port,
// Latency in us as the net plugin reports it, Ports is the number of ports of a NIC. Name is a pattern of the
// port's number ("mlx5_%d"); Names lists the names instead. Virtual NICs have no PCI function. Ports are
// numbered from First, or as listed in Devs, else with the lowest free numbers. Names and Devs have one entry
// per port of the kind in the order of the file: by NUMA node, then by group.
type NIC struct {
	Kind    string   `json:"kind,omitempty"`
	First   int      `json:"first,omitempty"`
	Devs    []int    `json:"devs,omitempty"`
	Speed   int      `json:"speed,omitempty"`
	Latency float64  `json:"latency,omitempty"`
	Ports   int      `json:"ports,omitempty"`
	NoGDR   bool     `json:"noGDR,omitempty"`
	Virtual bool     `json:"virtual,omitempty"`
	PCIe    string   `json:"pcie,omitempty"`
	Name    string   `json:"name,omitempty"`
	Names   []string `json:"names,omitempty"`
}

// Group is a PCIe subtree of a NUMA node: a chain of switches (kinds in Switches), GPUs and NICs below the
// last one, and the subtrees of Below, which take NUMA, Bridge and Bus from the outermost group. Apart puts
// the NICs below a second switch next to the GPUs' one. NICsFirst is their order in the file. Times repeats
// the group. Bridge is the number of the host bridge within the NUMA node; each host bridge is a PCI domain
// in the file. Bus lists the bus ids of all PCI functions in order; without it they are generated. NIC
// replaces the Spec's kind of NIC in this group.
type Group struct {
	NUMA      int      `json:"numa"`
	Bridge    int      `json:"bridge,omitempty"`
	Switches  []string `json:"switches,omitempty"`
	GPUs      int      `json:"gpus,omitempty"`
	NICs      int      `json:"nics,omitempty"`
	NICsFirst bool     `json:"nicsFirst,omitempty"`
	Apart     bool     `json:"apart,omitempty"`
	Below     []Group  `json:"below,omitempty"`
	Times     int      `json:"times,omitempty"`
	Bus       []string `json:"bus,omitempty"`
	NIC       *NIC     `json:"nic,omitempty"`
}

// parts returns the group without Apart: the last switch and the second switch next to it become two subtrees
// of Below.
func (g *Group) parts() *Group {
	if !g.Apart {
		return g
	}
	out, last := *g, g.Switches[len(g.Switches)-1:]
	out.Apart, out.GPUs, out.NICs, out.Below = false, 0, 0, nil
	out.Switches = g.Switches[:len(g.Switches)-1]
	for _, nics := range []bool{g.NICsFirst, !g.NICsFirst} {
		switch {
		case nics && g.NICs > 0:
			out.Below = append(out.Below, Group{Switches: last, NICs: g.NICs, NIC: g.NIC})
		case !nics && g.GPUs > 0:
			out.Below = append(out.Below, Group{Switches: last, GPUs: g.GPUs})
		}
	}
	out.Below = append(out.Below, g.Below...)
	return &out
}

// each calls f for the copies of all groups in the order of the file.
func (s *Spec) each(f func(g *Group)) {
	var walk func(g *Group)
	walk = func(g *Group) {
		g = g.parts()
		for range max(g.Times, 1) {
			f(g)
			for i := range g.Below {
				walk(&g.Below[i])
			}
		}
	}
	for _, n := range s.NUMA {
		for i := range s.Groups {
			if s.Groups[i].NUMA == n.ID {
				walk(&s.Groups[i])
			}
		}
	}
}

// nic returns the kind of the group's NICs, the Spec's unless the group has its own.
func (s *Spec) nic(g *Group) *NIC {
	if g.NIC != nil {
		return g.NIC
	}
	return &s.NIC
}

// Network describes what is public about the network between such hosts. Kind is infiniband, roce, efa, tcpx,
// tcpxo, slingshot or socket. Rails is the number of rails of a rail-optimised network (0: no rails), Radix
// the number of ports of a leaf switch, Oversub the ratio of downlinks to uplinks above the leaves (1:
// non-blocking); 0 means unknown.
type Network struct {
	Kind    string  `json:"kind,omitempty"`
	Rails   int     `json:"rails,omitempty"`
	Radix   int     `json:"radix,omitempty"`
	Oversub float64 `json:"oversubscription,omitempty"`
}

// Fact is the source of a part of a Spec. Estimated: no source states the part; it is usual for such
// machines.
type Fact struct {
	Of        string `json:"of"`
	Source    string `json:"source"`
	Estimated bool   `json:"estimated,omitempty"`
}

// Parse reads a Spec; errors are *fail.FileError with file, line and column.
func Parse(data []byte, file string) (*Spec, error) {
	s := &Spec{}
	places, err := jsonfile.Strict(data, file, s)
	if err != nil {
		return nil, err
	}
	if p := s.check(); p != nil {
		return nil, places.Fail(p.path, p.hint, "%s", p.text)
	}
	return s, nil
}

// Limits of one host: NCCL's own arrays are not larger (topo.h: 576 nodes of a
// kind, xml.h: 256 elements of a local rank's XML are the tighter ones).
const (
	maxGroups = 512
	maxEach   = 64
	maxBelow  = 8
)

// problem is a fault of a Spec at a member.
type problem struct{ path, text, hint string }

func (p *problem) Error() string { return fmt.Sprintf("%s: %s; %s", p.path, p.text, p.hint) }

func wrong(path, hint, format string, args ...any) *problem {
	return &problem{path, fmt.Sprintf(format, args...), hint}
}
