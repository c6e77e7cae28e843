package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/connect"
)

// readPeer reads a rank or the word for the network.
func (t *textReader) readPeer() (int32, error) {
	w := t.next()
	if w == networkName {
		return Network, nil
	}
	v, err := t.value(w, 0, int64(t.p.Comm.NRanks-1))
	return int32(v), err
}

// readNetGroup reads the group of a connection with the network, and makes
// sure that no other has the network at an end.
func (t *textReader) readNetGroup(c *Conn) error {
	net := c.Src == Network || c.Dst == Network
	switch {
	case c.Kind != connect.CollNetRoute && net:
		return t.fault("a connection with the network is of kind "+routeNames[connect.CollNetRoute], "")
	case c.Kind != connect.CollNetRoute:
		return nil
	case c.Src == c.Dst || !net:
		return t.fault("a connection of kind "+routeNames[connect.CollNetRoute]+" is between a rank and the network", "write net for one end")
	}
	groups := t.p.list.NetGroups
	if err := small(t, "", &c.NetGroup, 0, int64(len(groups))-1); err != nil {
		return err
	}
	g := &groups[c.NetGroup]
	if !slices.Contains(g.Ranks, max(c.Src, c.Dst)) || !slices.Contains(g.Channels, c.Channel) {
		return t.fault(fmt.Sprintf("rank %d has no channel %d in group %d", max(c.Src, c.Dst), c.Channel, c.NetGroup), "name both in its net line")
	}
	return nil
}

// readNet reads a group of the network.
func (t *textReader) readNet() error {
	l := t.p.list
	if len(l.Conns) > 0 || len(l.Programs) > 0 {
		t.word = 0
		return t.fault("a group of the network after the first connection", "list all groups first")
	}
	var g NetGroup
	id := int32(len(l.NetGroups))
	err := small(t, "", &id, int64(id), int64(id))
	if err == nil {
		g.Ranks, err = t.readSet("ranks", int64(t.p.Comm.NRanks-1))
	}
	if err == nil && len(g.Ranks) != t.p.Comm.NNodes {
		err = t.fault(fmt.Sprintf("%d ranks for %d nodes", len(g.Ranks), t.p.Comm.NNodes), "list one rank of each node")
	}
	if err == nil {
		g.Channels, err = t.readSet("channels", 1<<20)
	}
	if err == nil {
		err = small(t, "chunk", &g.Chunk, 1, 1<<30)
	}
	if err == nil {
		err = small(t, "part", &g.First, 0, 1<<20)
	}
	if err == nil {
		err = small(t, "of", &g.Total, int64(g.First)+int64(len(g.Channels)), 1<<21)
	}
	l.NetGroups = append(l.NetGroups, g)
	return firstOf(err, t.endIf(err))
}

// readSet reads numbers separated by commas, each once, after the word name.
func (t *textReader) readSet(name string, high int64) ([]int32, error) {
	if err := t.expect(name); err != nil {
		return nil, err
	}
	var out []int32
	seen := map[int32]bool{}
	for _, w := range strings.Split(t.next(), ",") {
		v, err := t.value(w, 0, high)
		if err != nil {
			return nil, err
		}
		if seen[int32(v)] {
			return nil, t.fault(fmt.Sprintf("%d twice", v), "")
		}
		seen[int32(v)] = true
		out = append(out, int32(v))
	}
	return out, nil
}
