package bootstrap

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/simccl/simccl/real/internal/transport"
)

// accept dispatches incoming connections by role until the listener closes.
func (c *Group) accept() { _ = transport.Serve(c.ln, c.n, c.receive) }

func (c *Group) receive(raw net.Conn, known func()) {
	conn, g, err := welcome(raw, c.gate, known)
	if err != nil || int(g.nRanks) != c.n || int(g.rank) >= c.n {
		raw.Close()
		return
	}
	c.conns.add(conn)
	switch {
	case g.role == roleRing && int(g.rank) == (c.rank+c.n-1)%c.n:
		select {
		case c.prevCh <- conn:
		default:
			conn.Close()
		}
	case g.role == rolePeer:
		c.box.pump(int(g.rank), conn)
	default:
		conn.Close()
	}
}

// buildRing connects to the successor, takes the predecessor's connection, and gathers every rank's address
// around the ring (bootstrap.cc, ringAllInfo).
func (c *Group) buildRing(ctx context.Context, succ string) error {
	if c.n == 1 {
		c.addrs = []string{c.ln.Addr().String()}
		return nil
	}
	next, err := c.dial(ctx, succ, roleRing)
	if err != nil {
		return fmt.Errorf("connect to rank %d at %s: %w", (c.rank+1)%c.n, succ, err)
	}
	c.next = next
	select {
	case c.prev = <-c.prevCh:
	case <-c.failed:
		return c.Err()
	case <-ctx.Done():
		return &TimeoutError{What: "wait for the predecessor", Ranks: []int{(c.rank + c.n - 1) % c.n}}
	}
	all, err := c.AllGather([]byte(c.ln.Addr().String()))
	if err != nil {
		return err
	}
	c.addrs = make([]string, c.n)
	for i, a := range all {
		c.addrs[i] = string(a)
	}
	return nil
}

// AllGather returns the blobs of all ranks, by rank, in n-1 steps around the ring. Blobs may differ in size.
func (c *Group) AllGather(mine []byte) ([][]byte, error) {
	c.ringMu.Lock()
	defer c.ringMu.Unlock()
	all := make([][]byte, c.n)
	all[c.rank] = mine
	if c.n == 1 {
		return all, nil
	}
	c.ringSeq++
	limit := time.Now().Add(c.opt.Op)
	c.next.SetWriteDeadline(limit)
	c.prev.SetReadDeadline(limit)
	for step := 0; step < c.n-1; step++ {
		give := (c.rank - step + c.n) % c.n
		take := (c.rank - step - 1 + c.n) % c.n
		// Sending and receiving run at the same time: two large blobs would otherwise wait for each other's
		// socket buffers.
		sent := make(chan error, 1)
		out := frame{frRing, c.ringSeq, all[give]} // a rank that cannot receive returns before it is sent
		go func() { sent <- writeFrame(c.next, out) }()
		f, err := readFrame(c.prev)
		if err != nil {
			return nil, c.cause("all-gather", (c.rank+c.n-1)%c.n, err)
		}
		if f.kind != frRing || f.tag != c.ringSeq {
			return nil,
				fmt.Errorf("all-gather %d: rank %d is at all-gather %d: ranks called collectives in "+
					"different order", c.ringSeq, (c.rank+c.n-1)%c.n, f.tag)
		}
		if err := <-sent; err != nil {
			return nil, c.cause("all-gather", (c.rank+1)%c.n, err)
		}
		all[take] = f.payload
	}
	return all, nil
}

// Barrier returns when every rank has called it.
func (c *Group) Barrier() error {
	if _, err := c.AllGather(nil); err != nil {
		return fmt.Errorf("barrier: %w", err)
	}
	return nil
}
