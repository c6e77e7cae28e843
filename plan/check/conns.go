package check

import (
	"slices"

	"github.com/simccl/simccl/plan"
)

func (c *runner[V]) layConn(i int, id int32) {
	k := &c.conns[i]
	k.sender, k.receiver = -1, -1
	c.p.EndsInto(&k.conn, id)
}

// layUsed lays out the connections that the programs use.
func (c *runner[V]) layUsed() {
	c.at = map[int32]int32{}
	var op plan.Op
	for i := range c.progs {
		g := &c.progs[i]
		for c.p.OpenInto(&g.cur, &g.pr); g.cur.Next(&op); {
			for _, id := range slices.Concat(op.From, op.To) {
				if _, ok := c.at[id]; !ok && id >= 0 && id < c.p.NumConns() {
					c.at[id] = int32(len(c.at))
				}
			}
		}
	}
	c.conns = make([]fifo[V], len(c.at))
	for id, i := range c.at { //lint:sorted each by itself
		c.layConn(int(i), id)
	}
}

// fifo is that of a connection; nil where there is no such connection.
func (c *runner[V]) fifo(id int32) *fifo[V] {
	at, ok := id-c.lo, true
	if c.at != nil {
		at, ok = c.at[id]
	}
	if !ok || at < 0 || int(at) >= len(c.conns) {
		return nil
	}
	return &c.conns[at]
}
