package collector

import (
	"fmt"

	"github.com/simccl/simccl/coll"
)

// sumScaled is the number of a sum of scaled inputs, after NCCL's own reductions.
const sumScaled = 5

// memory is Peer.Memory of a process, with errors that name process and address.
type memory struct{ p *process }

func (m memory) open() (dataMemory, error) {
	if m.p.memory == nil {
		return nil, fmt.Errorf("process %d has ended, or has not shown its memory", m.p.pid)
	}
	return m.p.memory, nil
}

// ReadAt implements dataMemory.
func (m memory) ReadAt(to []byte, at int64) (int, error) {
	return m.at("read", to, at, dataMemory.ReadAt)
}

// WriteAt implements dataMemory.
func (m memory) WriteAt(from []byte, at int64) (int, error) {
	return m.at("write", from, at, dataMemory.WriteAt)
}

func (m memory) at(what string, b []byte, at int64, do func(dataMemory, []byte, int64) (int, error)) (int,
	error) {
	in, err := m.open()
	n := 0
	if err == nil && len(b) > 0 {
		n, err = do(in, b, at)
	}
	if err != nil {
		err = fmt.Errorf("%s %d bytes at 0x%x of process %d: %w", what, len(b), uint64(at), m.p.pid, err)
	}
	return n, err
}

// place returns an address in the memory of the unit's process.
func (u *unit) place(at uint64) dataPlace { return dataPlace{In: memory{u.m.dev.p}, At: at} }

// move carries out cudaMemcpyAsync or cudaMemsetAsync on the process's memory.
func (c *Core) move(o *op) {
	if !c.set.Data || o.st.dev.p.ended {
		return
	}
	in, n := memory{o.st.dev.p}, o.a[2]
	to := dataPlace{In: in, At: uint64(o.a[0])}
	var err error
	if o.kind == setBytes {
		err = fillData(to, byte(o.a[1]), n)
	} else {
		err = copyData(dataPlace{In: in, At: uint64(o.a[1])}, to, n)
	}
	if err != nil {
		o.st.failed = true
		c.warn("a copy of %d bytes: %v", n, err)
	}
}

// transfer copies bytes between processes.
func (c *Core) transfer(from *unit, at uint64, to *unit, dst uint64, n int64) error {
	return copyData(from.place(at), to.place(dst), n)
}

// carry copies the data of the messages between units.
func (c *Core) carry(units []*unit) error {
	for _, u := range units {
		for _, h := range u.halves {
			if coll.Func(h.op.fn) != coll.Send {
				continue
			}
			if err := c.transfer(u, h.op.send, h.other.u, h.other.op.recv, bytesOf(h.op)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduceAll moves and reduces the data of the collectives of a launch.
func (c *Core) reduceAll(units []*unit) error {
	for i := range units[0].ops {
		if err := c.collective(units, i); err != nil {
			return fmt.Errorf("%s: %w", describe(&units[0].ops[i]), err)
		}
	}
	return nil
}

func (c *Core) collective(units []*unit, i int) error {
	o := &units[0].ops[i]
	size := bytesOf(o)
	root := int(o.root)
	at := func(r int) *wireOp { return &units[r].ops[i] }
	switch f := coll.Func(o.fn); f {
	case coll.AllReduce, coll.Reduce:
		to := []int{root}
		if f == coll.AllReduce {
			to = to[:0]
			for r := range units {
				to = append(to, r)
			}
		}
		return c.reduce(units, i, 0, size, to, func(r int) uint64 { return at(r).recv })
	case coll.ReduceScatter:
		// Block r of all inputs is read before rank r's output is written, which in place is that block.
		for r := range units {
			if err := c.reduce(units, i, int64(r)*size, size, []int{r}, func(r int) uint64 {
				return at(r).recv
			}); err != nil {
				return err
			}
		}
		return nil
	case coll.Broadcast:
		return c.each(units, func(r int) error {
			return c.transfer(units[root], at(root).send, units[r], at(r).recv, size)
		})
	case coll.AllGather:
		return c.pairs(units, func(r, s int) error {
			return c.transfer(units[s], at(s).send, units[r], at(r).recv+uint64(int64(s)*size), size)
		})
	case coll.AllToAll:
		return c.pairs(units, func(r, s int) error {
			return c.transfer(units[s], at(s).send+uint64(int64(r)*size), units[r], at(r).recv+
				uint64(int64(s)*size), size)
		})
	case coll.Gather:
		return c.each(units, func(r int) error {
			return c.transfer(units[r], at(r).send, units[root], at(root).recv+uint64(int64(r)*size), size)
		})
	case coll.Scatter:
		return c.each(units, func(r int) error {
			return c.transfer(units[root], at(root).send+uint64(int64(r)*size), units[r], at(r).recv, size)
		})
	}
	return fmt.Errorf("data of %s are not moved", name(o))
}

func (c *Core) each(units []*unit, do func(r int) error) error {
	for r := range units {
		if err := do(r); err != nil {
			return err
		}
	}
	return nil
}

func (c *Core) pairs(units []*unit, do func(r, s int) error) error {
	for r := range units {
		for s := range units {
			if err := do(r, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduce reduces a piece of all ranks' inputs in the order of the ranks, and stores
// it at those of to.
func (c *Core) reduce(units []*unit, i int, from, n int64, to []int, dst func(r int) uint64) error {
	typ, op := coll.DataType(units[0].ops[i].typ), units[0].ops[i].redop
	red := coll.Sum
	if op < sumScaled {
		red = coll.RedOp(op)
	}
	in, out := make([]reduceInput, len(units)), make([]dataPlace, len(to))
	for r, u := range units {
		o := &u.ops[i]
		in[r] = reduceInput{dataPlace: u.place(o.send + uint64(from)), Scaled: op >= sumScaled,
			Pointer: o.flags&flagScalarPointer != 0, Scalar: o.scalar}
	}
	for k, r := range to {
		out[k] = units[r].place(dst(r))
	}
	return reduceData(typ, red, in, n, out)
}
