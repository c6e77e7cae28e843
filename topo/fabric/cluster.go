// Package fabric joins hosts into a cluster: it assigns ranks to GPUs of hosts, numbers the ports and
// connects them by a network. It is pure. Hosts with the same topology share one built topo.Host, so a
// cluster of thousands of hosts costs no more than one of a few.
//
// Its counterpart in NCCL is what bootstrap and the all-gathers of init.cc find out: ranks in order of hosts,
// local ranks by device number.
package fabric

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Member is a number of consecutive equal hosts, or NVLink domains.
type Member struct {
	Spec  *topo.Spec
	Count int
	// Fabric reports that the hosts of a one-host Spec have a completed NVLink fabric with a cluster UUID, as
	// a tray that is alone in its rack has. Hosts of a multi-host Spec always have one: it joins them.
	Fabric bool
	// Keep lists the local ranks in use, ascending; nil: Params.GPUs decides.
	Keep []int
}

// Class is a set of hosts with equal topologies, built once and shared.
type Class struct {
	Spec  *topo.Spec
	Host  *topo.Host
	Count int
	Keep  []int         // as Member's
	gpus  []topo.NodeID // by local rank, in the rank's own System
}

// Cluster is all hosts of a communicator. It is immutable.
type Cluster struct {
	Classes []Class
	class   []int32 // host → class
	first   []int32 // host → its first rank; one more at the end
	ports   []int32 // host → its first port; one more at the end

	// NoFabric names the Spec of the first host without an NVLink fabric where
	// that took NVLink domains apart; else it is empty.
	NoFabric string
}

// Place is the location of a rank: its host, local rank and GPU.
type Place struct {
	Host   int // index of the host in the cluster
	Local  int // local rank on it
	Class  *Class
	System *topo.System // the part of the host that the rank's GPU is in
	GPU    topo.NodeID  // in System
}

// PortID names a net of a host, dense over the cluster: the network ends there.
type PortID int32

// Port is an endpoint of the network: a net of a host.
type Port struct {
	Host int
	Net  int // index among System.Of(topo.NET) of every System of the host
	BW   units.GBps
}

// ErrNoHosts reports that a cluster has no member.
var ErrNoHosts = errors.New("a cluster needs at least one host")

// NewUniform returns a cluster of n equal hosts.
func NewUniform(spec *topo.Spec, n int, p topo.Params) (*Cluster, error) {
	return New([]Member{{Spec: spec, Count: n}}, p)
}

// New builds every member once, for a communicator over all GPUs of all hosts
// (or the p.GPUs lowest of each), ranks numbered host by host. p.NRanks is
// replaced by their number.
//
// The hosts of NVLink domains are machines of their own with p.SplitHosts
// (NCCL_MNNVL_ENABLE=0), domain after domain, and where a host of the
// communicator has no fabric: NCCL uses MNNVL for all ranks or for none
// (mnnvl.cc:27).
func New(members []Member, p topo.Params) (*Cluster, error) {
	noFabric := withoutFabric(members)
	units := whole(members, p)
	if p.SplitHosts || noFabric != "" {
		var err error
		if units, err = apart(members, p); err != nil {
			return nil, err
		}
	}
	if p.SplitHosts {
		noFabric = ""
	}
	p.SplitHosts, p.NRanks = false, 0
	for _, m := range units {
		if m.Count < 0 {
			return nil, fmt.Errorf("%d hosts of %s: a number of hosts is at least 0", m.Count, m.Spec.Name)
		}
		own := p
		own.GPUs, own.Keep = m.gpus, m.Keep
		n, err := topo.CountGPUs(m.Spec, &own)
		if err != nil {
			return nil, err
		}
		p.NRanks += n * m.Count
	}
	if p.NRanks == 0 {
		return nil, ErrNoHosts
	}
	c := &Cluster{first: []int32{0}, ports: []int32{0}, NoFabric: noFabric}
	for _, m := range units {
		if m.Count == 0 {
			continue
		}
		own := p
		own.GPUs, own.Keep = m.gpus, m.Keep
		k, err := c.addClass(m.Member, own)
		if err != nil {
			return nil, err
		}
		for range m.Count {
			h := c.Classes[k].Host
			c.class = append(c.class, int32(k))
			c.first = append(c.first, c.first[len(c.first)-1]+int32(h.NRanks()))
			c.ports = append(c.ports, c.ports[len(c.ports)-1]+int32(len(h.Systems[0].Of(topo.NET))))
		}
	}
	return c, nil
}

// addClass builds a member, or finds the class of the same Spec.
func (c *Cluster) addClass(m Member, p topo.Params) (int, error) {
	for k := range c.Classes {
		if c.Classes[k].Spec == m.Spec && slices.Equal(c.Classes[k].Keep, m.Keep) &&
			(m.Keep == nil) == (c.Classes[k].Keep == nil) {
			c.Classes[k].Count += m.Count
			return k, nil
		}
	}
	h, err := topo.Build(m.Spec, p)
	if err != nil {
		return 0, err
	}
	k := Class{Spec: m.Spec, Host: h, Count: m.Count, Keep: m.Keep, gpus: make([]topo.NodeID, h.NRanks())}
	for _, s := range h.Systems {
		for _, n := range s.Of(topo.GPU) {
			k.gpus[s.Nodes[n].GPU.Rank] = n
		}
	}
	c.Classes = append(c.Classes, k)
	return len(c.Classes) - 1, nil
}

// NHosts counts hosts; a multi-node NVLink domain from one file is one host.
func (c *Cluster) NHosts() int { return len(c.class) }

// NRanks returns the number of ranks.
func (c *Cluster) NRanks() int { return int(c.first[len(c.first)-1]) }

// Host returns a host of the cluster; equal hosts are the same value.
func (c *Cluster) Host(i int) *topo.Host { return c.Classes[c.class[i]].Host }

// ClassOf returns the index of a host's class in Classes.
func (c *Cluster) ClassOf(host int) int { return int(c.class[host]) }

// HostName returns the name of a simulated host: node0, node1, …
func (c *Cluster) HostName(host int) string { return fmt.Sprintf("node%d", host) }

// Rank returns the global rank of a host's local rank.
func (c *Cluster) Rank(host, local int) int { return int(c.first[host]) + local }

// Locate returns the host, local rank, System and GPU of a rank, by binary search over the hosts.
func (c *Cluster) Locate(rank int) Place {
	host := sort.Search(len(c.class), func(h int) bool { return int(c.first[h+1]) > rank })
	k := &c.Classes[c.class[host]]
	local := rank - int(c.first[host])
	return Place{Host: host, Local: local, Class: k, System: k.Host.System(local), GPU: k.gpus[local]}
}

// NPorts returns the number of ports of all hosts.
func (c *Cluster) NPorts() int { return int(c.ports[len(c.ports)-1]) }

// PortOf names the port of a host's net, by the net's index among its
// Systems' NET nodes.
func (c *Cluster) PortOf(host, net int) PortID { return PortID(int(c.ports[host]) + net) }

// Port returns the host, net and bandwidth of a port.
func (c *Cluster) Port(id PortID) Port {
	host := sort.Search(len(c.class), func(h int) bool { return c.ports[h+1] > int32(id) })
	net := int(id) - int(c.ports[host])
	s := c.Host(host).Systems[0]
	return Port{Host: host, Net: net, BW: s.Nodes[s.Of(topo.NET)[net]].Net.BW}
}
