package device

import (
	"encoding/binary"

	"github.com/simccl/simccl/units"
)

// Memory is the device memory of a session, the largest of all ranks, as nccl-tests' -M reports it.
type Memory struct {
	Init    units.Bytes // communicators and arenas
	Buffers units.Bytes // send and receive buffers, with their registration
	Work    units.Bytes // allocated since then by the operations
}

// Moments at which a rank records its free device memory.
const (
	beforeBuffers = iota
	afterBuffers
	afterInit
	afterRegister
	opened
	moments
)

// note records the free device memory. It includes the effect of other users of the GPU, as in nccl-tests.
func (r *rank) note(moment int) error {
	free, _, err := r.dev.MemInfo()
	r.freeAt[moment] = free
	return err
}

// memory returns the memory that the rank has allocated so far.
func (r *rank) memory() (Memory, error) {
	now, _, err := r.dev.MemInfo()
	f := &r.freeAt
	return Memory{
		Init:    f[afterBuffers] - f[afterInit] + f[afterRegister] - f[opened],
		Buffers: f[beforeBuffers] - f[afterBuffers] + f[afterInit] - f[afterRegister],
		Work:    f[opened] - now,
	}, err
}

// Memory returns the memory of the session. All processes must call it with equal arguments.
func (s *Session) Memory() (m Memory, err error) {
	of := make([]Memory, len(s.ranks))
	if err := s.each(func(r *rank) (err error) {
		of[r.local], err = r.memory()
		return err
	}); err != nil {
		return m, err
	}
	var text []byte
	for _, o := range of {
		for _, v := range []units.Bytes{o.Init, o.Buffers, o.Work} {
			text = binary.LittleEndian.AppendUint64(text, uint64(v))
		}
	}
	lists := [][]byte{text}
	if s.cfg.Boot != nil {
		if lists, err = s.cfg.Boot.AllGather(text); err != nil {
			return m, err
		}
	}
	first := true
	for _, l := range lists {
		for ; len(l) >= 24; l = l[24:] {
			at := func(i int) units.Bytes { return units.Bytes(binary.LittleEndian.Uint64(l[8*i:])) }
			if first { // freed memory counts as negative
				m, first = Memory{at(0), at(1), at(2)}, false
			}
			m = Memory{max(m.Init, at(0)), max(m.Buffers, at(1)), max(m.Work, at(2))}
		}
	}
	return m, nil
}
