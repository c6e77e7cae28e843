// Package machine describes a machine by what a data sheet says of it (CPUs, PCIe
// switches, GPUs, NVLink, NICs) and writes the tree of elements that NCCL would
// find there. It knows no NCCL rule: what is decided on the tree is elsewhere.
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
	// Domain is how many such hosts share one NVLink domain; 0 and 1: none.
	Domain  int     `json:"domain,omitempty"`
	Network Network `json:"network"`
	// Facts says where each part of the Spec comes from.
	Facts []Fact `json:"facts,omitempty"`
}

// NUMA is one NUMA node of the host, -1 where the host names none. Cores is a list of
// ranges ("0-47,96-143"); empty leaves the affinity out.
type NUMA struct {
	ID    int    `json:"id"`
	Cores string `json:"cores,omitempty"`
}

// GPU is the kind of all GPUs. NoGDR: GPUDirect RDMA is off. PCIe replaces the
// kind's own link, "4x16" for generation 4 of 16 lanes, "unknown" for a VM that does not say.
// Devs are the GPUs' numbers in the order of the file, where they are not 0, 1, 2 ….
type GPU struct {
	Kind  string `json:"kind"`
	NoGDR bool   `json:"noGDR,omitempty"`
	PCIe  string `json:"pcie,omitempty"`
	Devs  []int  `json:"devs,omitempty"`
}

// NVLink says what the NVLinks of each GPU lead to: NVSwitches (Switch; Counts are
// the links to each visible NVSwitch, none: one virtual target), or other GPUs:
// Mesh links to each other GPU, or Pairs {GPU, GPU, links}. Links replaces the
// number of links of the kind; Each lists it by GPU where GPUs differ (0: none works).
type NVLink struct {
	Switch bool     `json:"switch,omitempty"`
	Links  int      `json:"links,omitempty"`
	Each   []int    `json:"each,omitempty"`
	Counts []int    `json:"counts,omitempty"`
	Bus    []string `json:"bus,omitempty"` // bus ids of the visible NVSwitches
	Mesh   int      `json:"mesh,omitempty"`
	Pairs  [][3]int `json:"pairs,omitempty"`
}

// NIC is the kind of all NICs; what is zero is the kind's. Speed is of a port, in
// Mb/s, Latency in us as the net plugin reports it, Ports the ports of a NIC.
// Name is a pattern of the port's number ("mlx5_%d"); Names lists them instead.
// Virtual NICs have no PCI function. Ports are numbered from First on, or as Devs lists
// them, or else take the least numbers that are free. Names and Devs have an entry for each
// port of the kind in the order of the file: NUMA node by NUMA node, group by group.
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

// Group is a PCIe subtree of a NUMA node: switches one below the other (kinds of Switches),
// then GPUs and NICs below the last, then the subtrees of Below, which leave NUMA, Bridge and
// Bus to the outermost group. Apart puts the NICs below a second switch beside the GPUs' one.
// NICsFirst is their order in the file. Times repeats the group. Bridge is the number of the
// host bridge within the NUMA node, each of which is a PCI domain of its own in the file.
// Bus lists bus ids of all its PCI functions in order; without it they are made.
// NIC is the kind of the NICs of this group where it is not that of the others.
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

// parts is a group without Apart: the last switch and the one beside it become two subtrees.
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

// nic is the kind of a group's NICs.
func (s *Spec) nic(g *Group) *NIC {
	if g.NIC != nil {
		return g.NIC
	}
	return &s.NIC
}

// Network is what is public about the network between such hosts. Kind is
// infiniband, roce, efa, tcpx, tcpxo, slingshot or socket; Rails the number of rails
// of a rail-optimised one (0: no rails); Radix the ports of a leaf switch; Oversub
// the ratio of downlinks to uplinks above the leaves (1: non-blocking); 0 is unknown.
type Network struct {
	Kind    string  `json:"kind,omitempty"`
	Rails   int     `json:"rails,omitempty"`
	Radix   int     `json:"radix,omitempty"`
	Oversub float64 `json:"oversubscription,omitempty"`
}

// Fact is where a part of a Spec comes from. Estimated: no source states it; it is
// what such machines usually have.
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
