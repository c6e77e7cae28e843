package ncclog

import (
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/show"
)

// Head returns the lines that a rank logs before its graphs: version, settings, network, NETs, multicast and
// its place in the communicator. Pointers and hashes are simccl's own numbers.
func Head(c *comm.Comm, rank int32, settings []Setting) []Line {
	var l log
	d := &c.Domains[c.NodeOf[rank]]
	sys := d.System
	version := "NCCL version "
	if c.Rules.Library == rules.RCCL {
		version = "RCCL version : " // init.cc:937 of RCCL 2.30.4
	}
	l.add(Init, "%s%s", version, c.Rules.Release)
	for _, s := range settings {
		l.add(Env, "%s set by environment to %s", s.Name, s.Value)
	}
	dev, bus, host := 0, uint64(0), 0
	for _, id := range sys.Of(topo.GPU) {
		if gpu := sys.Nodes[id].GPU; d.First+int32(gpu.Rank) == rank {
			dev, bus, host = gpu.Dev, sys.Nodes[id].Ident&(1<<56-1), gpu.Host
		}
	}
	network := "IB"
	for _, id := range sys.Of(topo.NET) {
		switch n := sys.Nodes[id].Net; {
		case n.Sockets:
			network = "Socket"
		case n.LatencyUs > 0:
			network = "AWS Libfabric"
		}
	}
	l.add(Init, "Using network %s", network) // init.cc:428
	start := "ncclCommInitRank"
	if c.Rules.Log.RankOfInit {
		start = fmt.Sprintf("[Rank %d] %s", rank, start)
	}
	const pointer, id = 0x51_0000, 0x51cc1
	l.add(Init, "%s comm 0x%x rank %d nranks %d cudaDev %d nvmlDev %d busId %x commId 0x%x - Init START",
		start, pointer+int(rank), rank, c.NRanks, dev, dev, bus, id)
	for _, id := range sys.Of(topo.NET) {
		n := sys.Nodes[id].Net
		if n.Host == host {
			l.add(Net, "NET/%s : GPU Direct RDMA %s for HCA %d '%s'", plugin(network),
				map[bool]string{true: "Enabled", false: "Disabled"}[n.GDR], n.Dev, n.Name)
		}
	}
	not := "not "
	if c.Multicast {
		not = ""
	}
	l.add(Init, "NVLS multicast support is %savailable on dev %d", not, dev) // nvls.cc:201
	mnnvl := 0
	if sys.NHosts > 1 {
		mnnvl = 1
	}
	l.add(Init, "comm 0x%x rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL %d",
		pointer+int(rank), rank, c.NRanks, c.NNodes, len(sys.Of(topo.GPU)), localRank(c, rank), mnnvl)
	return l
}

// localRank returns the index of a rank among the ranks of its node. If NCCL splits a host, each part is a
// node, and its ranks need not be consecutive.
func localRank(c *comm.Comm, rank int32) int {
	n := 0
	for _, node := range c.NodeOf[c.Domains[c.NodeOf[rank]].First:rank] {
		if node == c.NodeOf[rank] {
			n++
		}
	}
	return n
}

// plugin returns the network's name in the lines of NETs.
func plugin(network string) string {
	if network == "AWS Libfabric" {
		return "OFI"
	}
	return network
}

// WriteInit writes the log lines of rank 0 and of the first rank of every node whose system differs from the
// previous node's: enough to reconstruct the cluster.
func WriteInit(w io.Writer, c *comm.Comm, settings []Setting, subs ...Subsystem) error {
	var before []string
	for n := range c.Domains {
		d := &c.Domains[n]
		system := show.Log(d.System, 0)
		if n > 0 && slices.Equal(system, before) {
			continue
		}
		before = system
		first := int32(slices.Index(c.NodeOf, int32(n)))
		lines := append(Head(c, first, settings), OfRank(c, first)...)
		if err := write(w, RankPrefix(c, first), lines, subs); err != nil {
			return err
		}
	}
	return nil
}
