package host

import (
	"bytes"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// memory holds a rank's buffers, and a schedule's scratch memory.
type memory struct{ in, out, scratch []byte }

// at returns n bytes of a buffer from off on; empty pieces may be beyond its end.
func (m *memory) at(r plan.Ref, off, n int) []byte {
	if n == 0 {
		return []byte{}
	}
	b := m.in
	switch r.Buf {
	case plan.Output:
		b = m.out
	case plan.Scratch:
		b = m.scratch
	}
	return b[int(r.Off)+off:][:n:n]
}

// poison is the initial content of outputs, so that unwritten bytes are detected.
const poison = 0xa5

// newMemory allocates a rank's buffers and fills its input.
func newMemory(p *plan.Plan, rank int32, k *kernel, seed uint64) *memory {
	l := p.Layout(rank)
	m := &memory{scratch: bytes.Repeat([]byte{poison}, int(l.Scratch))}
	// In place, sendrecv and alltoall read memory that another thread writes. The result is undefined, but a
	// data race is not necessary: they get separate buffers.
	if l.Shared && p.DataDefined() {
		all := bytes.Repeat([]byte{poison}, int(l.Size()))
		m.in, m.out = all[l.InputAt:][:l.Input:l.Input], all[l.OutputAt:][:l.Output:l.Output]
	} else {
		m.in, m.out = make([]byte, l.Input), bytes.Repeat([]byte{poison}, int(l.Output))
	}
	for i := 0; (i+1)*k.size <= len(m.in); i++ {
		k.put(m.in[i*k.size:], element(k, p.Comm.NRanks, rank, i, seed))
	}
	return m
}

// element returns element i of a rank's input: a small integer, chosen such that any order of reduction gives
// the same bits in every type.
func element(k *kernel, n int, rank int32, i int, seed uint64) int {
	v := i*7 + int(rank)*3 + int(seed%97)
	switch {
	case k.typ == coll.Float8e4m3 || k.typ == coll.Float8e5m2:
		// Three bits of mantissa: only one rank may have a value other than 0.
		if k.red != coll.Prod && v%n == 0 {
			return 1 + i%3
		}
		if k.red == coll.Prod {
			return 1
		}
		return 0
	case k.red == coll.Prod:
		if v%5 == 0 {
			return 2
		}
		return 1
	case k.red == coll.Avg:
		return v % 3
	}
	return v % 5
}

// verify counts the wrong elements of a rank's output.
func (x *run) verify(rank int32) (wrong int64) {
	k, n := x.k, x.p.Comm.NRanks
	want, term := make([]byte, k.size), make([]byte, k.size)
	x.p.Want(rank, func(off, size units.Bytes, from plan.Places) {
		got := x.mem[rank].out[off:][:size]
		for i := 0; (i+1)*k.size <= len(got); i++ {
			at := int(from.Off)/k.size + i
			if from.Rank != plan.AllRanks {
				k.put(want, element(k, n, from.Rank, at, x.seed))
			} else {
				k.put(want, element(k, n, 0, at, x.seed))
				for r := int32(1); r < int32(n); r++ {
					k.put(term, element(k, n, r, at, x.seed))
					k.combine(want, term)
				}
				if k.red == coll.Avg && n > 1 {
					k.scale(want, n)
				}
			}
			if !bytes.Equal(got[i*k.size:(i+1)*k.size], want) {
				wrong++
			}
		}
	})
	return wrong
}
