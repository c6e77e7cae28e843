package fabric

import (
	"fmt"

	"github.com/simccl/simccl/topo"
)

// Subset is a part of a cluster: what a communicator over some of its ranks has.
type Subset struct {
	Cluster *Cluster
	Hosts   []int // by host of the part: the host of the whole
}

// SubsetError is a list of ranks that are no part of a cluster.
type SubsetError struct{ Problem string }

func (e *SubsetError) Error() string { return "ranks of a communicator: " + e.Problem }

// Places returns the hosts that ranks of the cluster are on, in order, and the
// local ranks on each. ranks ascend: that is the order in which NCCL numbers nodes
// and local ranks (init.cc:1092). The error is a *SubsetError.
func (c *Cluster) Places(ranks []int32) (hosts []int, keep [][]int, err error) {
	for i, r := range ranks {
		if r < 0 || int(r) >= c.NRanks() || i > 0 && r <= ranks[i-1] {
			return nil, nil, &SubsetError{fmt.Sprintf("rank %d at place %d; ranks of a cluster of %d ascend",
				r, i, c.NRanks())}
		}
		if n := len(hosts); n == 0 || int(r) >= int(c.first[hosts[n-1]+1]) {
			hosts, keep = append(hosts, c.Locate(int(r)).Host), append(keep, nil)
		}
		n := len(hosts) - 1
		keep[n] = append(keep[n], int(r-c.first[hosts[n]]))
	}
	if len(hosts) == 0 {
		return nil, nil, &SubsetError{"there are none"}
	}
	return hosts, keep, nil
}

// Subset builds the part of a cluster that has the given ranks, ascending, with
// the Params that the cluster was built with. What NCCL takes for granted of a
// host depends on the GPUs that take part: its search sees no others.
func (c *Cluster) Subset(ranks []int32, p topo.Params) (*Subset, error) {
	hosts, keep, err := c.Places(ranks)
	if err != nil {
		return nil, err
	}
	members := make([]Member, len(hosts))
	for i, h := range hosts {
		// The hosts of the whole are apart already where NVLink domains are.
		members[i] = Member{Spec: c.Classes[c.class[h]].Spec, Count: 1, Fabric: true, Keep: keep[i]}
	}
	sub, err := New(members, p)
	if err != nil {
		return nil, err
	}
	return &Subset{sub, hosts}, nil
}
