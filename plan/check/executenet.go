package check

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// network is a group in progress: the connections of every node and channel, in
// the order of both.
type network struct {
	to, from []int32 // node·channels + channel → connection, -1
	steps    int64
}

// layNetworks finds the connections of every group.
func (c *runner[V]) layNetworks() {
	groups := c.p.NetGroups()
	c.nets = make([]network, len(groups))
	at := make(map[[3]int32]int) // group, channel, rank → place
	for g := range groups {
		set := &groups[g]
		n := len(set.Ranks) * len(set.Channels)
		c.nets[g].to, c.nets[g].from = make([]int32, n), make([]int32, n)
		for i := range n {
			c.nets[g].to[i], c.nets[g].from[i] = -1, -1
			at[[3]int32{int32(g), set.Channels[i%len(set.Channels)], set.Ranks[i/len(set.Channels)]}] = i
		}
	}
	for id := range c.conns {
		k := &c.conns[id].conn
		if k.Kind != connect.CollNetRoute {
			continue
		}
		if i, ok := at[[3]int32{k.NetGroup, k.Channel, max(k.Src, k.Dst)}]; !ok {
			continue
		} else if k.Dst == plan.Network {
			c.nets[k.NetGroup].to[i] = int32(id)
		} else {
			c.nets[k.NetGroup].from[i] = int32(id)
		}
	}
}

// network runs steps of a group as long as all that they need is there.
func (c *runner[V]) network(group int32) error {
	if group < 0 || int(group) >= len(c.nets) {
		return &Error{-1, -1, -1, -1, fmt.Sprintf("group %d of the network does not exist", group)}
	}
	n := &c.nets[group]
	for {
		for i, id := range n.to {
			back := n.from[i]
			if id < 0 || back < 0 {
				return &Error{-1, -1, -1, -1, fmt.Sprintf("group %d of the network lacks a connection",
					group)}
			}
			if c.conns[id].posted <= n.steps || n.steps >= c.conns[back].released+plan.FIFOSteps {
				return nil
			}
		}
		if err := c.netStep(group); err != nil {
			return err
		}
	}
}

// netStep runs one step: it fills a slot of every connection from the network,
// and empties one of every connection to it.
func (c *runner[V]) netStep(group int32) error {
	g, n := &c.p.NetGroups()[group], &c.nets[group]
	nch := len(g.Channels)
	for i := range n.from {
		node, channel := int32(i/nch), int32(i%nch)
		pieces, err := c.netResult(group, channel, node)
		if err != nil {
			return &Error{g.Ranks[node], g.Channels[channel], -1, -1, err.Error()}
		}
		k := &c.conns[n.from[i]]
		slot := &k.slots[n.steps%plan.FIFOSteps]
		*slot = append((*slot)[:0], pieces...)
		k.posted++
	}
	for _, id := range n.to {
		k := &c.conns[id]
		k.slots[n.steps%plan.FIFOSteps] = k.slots[n.steps%plan.FIFOSteps][:0]
		k.released++
	}
	n.steps++
	for i := range n.to {
		c.rouse(n.to[i], c.conns[n.to[i]].sender)
		c.rouse(n.from[i], c.conns[n.from[i]].receiver)
	}
	return nil
}

// netResult is what a node gets of a step on a channel.
func (c *runner[V]) netResult(group, channel, node int32) ([]piece[V], error) {
	g, n := &c.p.NetGroups()[group], &c.nets[group]
	var out []piece[V]
	for peer := range int32(len(g.Ranks)) {
		// the piece that this peer adds, or that is this node's own
		part := node
		if c.p.Req.Func == coll.AllGather {
			part = peer
		}
		s := c.p.NetSpan(group, channel, part, n.steps)
		off := s.Mine
		if c.p.Req.Func == coll.AllGather {
			off = 0 // a node sends nothing but its own
		}
		pc, err := c.sentTo(n.to[int(peer)*len(g.Channels)+int(channel)], n.steps, off, &s)
		switch {
		case err != nil:
			return nil, err
		case c.p.Req.Func == coll.AllGather:
			if pc.off = s.Mine; s.MyBytes > 0 || s.Bytes == 0 && peer == 0 {
				out = append(out, pc)
			}
		case peer == 0:
			pc.off = 0
			out = append(out, pc)
		default:
			if out[0].bytes != pc.bytes {
				return nil, fmt.Errorf("the network adds %d bytes of rank %d to %d of rank %d", pc.bytes,
					g.Ranks[peer], out[0].bytes, g.Ranks[0])
			}
			if out[0].val, err = c.m.Reduce(nil, out[0].val, pc.val); err != nil {
				return nil, fmt.Errorf("the network: %w", err)
			}
		}
	}
	return out, nil
}

// sentTo returns what lies at an offset of a step sent to the network. Nothing
// need lie there where the span says that the node has no part.
func (c *runner[V]) sentTo(id int32, step int64, off units.Bytes, s *plan.NetSpan) (piece[V], error) {
	k := &c.conns[id]
	for _, pc := range k.slots[step%plan.FIFOSteps] {
		if pc.off != off {
			continue
		}
		if c.p.Req.Func != coll.AllReduce && pc.bytes != s.MyBytes {
			if s.MyBytes == 0 {
				break
			}
			return pc, fmt.Errorf("the network takes %d bytes of rank %d, which sent %d", s.MyBytes,
				k.conn.Src, pc.bytes)
		}
		return pc, nil
	}
	if c.p.Req.Func != coll.AllReduce && s.MyBytes == 0 {
		return piece[V]{}, nil
	}
	return piece[V]{}, fmt.Errorf("the network finds nothing of rank %d at offset %d of a step", k.conn.Src,
		off)
}
