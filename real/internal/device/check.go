package device

import (
	"encoding/binary"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/units"
)

// test describes the operation's data to the kernels.
func (r *rank) test(op *Case, seed uint32) *cuda.Test {
	return &cuda.Test{Func: op.Func, Type: op.Type, Red: op.Red, Rank: r.id, Ranks: r.s.cfg.Ranks,
		Root: op.Root, Count: op.Sizes.Count, Pairs: op.Pairs, Seed: seed}
}

// fill writes the rank's input and poisons its output.
func (r *rank) fill(op *Case, seed uint32) error {
	send, recv := r.place(op)
	size := op.Type.Size()
	_, whole := r.base(size)
	if err := r.checker.Poison(whole, units.Bytes(max(op.sent(r.id), op.received(r.id)))*size,
		r.stream); err != nil {
		return err
	}
	_ = recv
	if err := r.checker.Fill(r.test(op, seed), send, op.sent(r.id), r.stream); err != nil {
		return err
	}
	return r.wait()
}

// check runs the operation once on fresh data and compares every element of every rank.
func (s *Session) check(op *Case, by Method, seed uint32) (wrong int64, first string, err error) {
	count := make([]int64, len(s.ranks))
	words := make([]string, len(s.ranks))
	err = s.each(func(r *rank) error {
		queue, err := r.queuer(op, by)
		if err != nil {
			return err
		}
		if err := r.fill(op, seed); err != nil {
			return err
		}
		if err := r.together(); err != nil {
			return err
		}
		if err := queue(); err != nil {
			return err
		}
		if err := r.wait(); err != nil {
			return err
		}
		count[r.local], words[r.local], err = r.compare(op, seed)
		if err != nil {
			return err
		}
		return r.together()
	})
	if err != nil {
		return 0, "", err
	}
	for i, n := range count {
		if wrong += n; n > 0 && first == "" {
			first = words[i]
		}
	}
	if s.cfg.Boot == nil {
		return wrong, first, nil
	}
	lists, err := s.cfg.Boot.AllGather(append(binary.LittleEndian.AppendUint64(nil, uint64(wrong)), first...))
	if err != nil {
		return 0, "", err
	}
	wrong, first = 0, ""
	for _, l := range lists {
		n := int64(binary.LittleEndian.Uint64(l))
		if wrong += n; n > 0 && first == "" {
			first = string(l[8:])
		}
	}
	return wrong, first, nil
}

func (r *rank) compare(op *Case, seed uint32) (int64, string, error) {
	if (op.Func == coll.Reduce || op.Func == coll.Gather) && r.id != op.Root {
		return 0, "", nil // only the root's output is defined
	}
	_, recv := r.place(op)
	wrong, first, err := r.checker.Check(r.test(op, seed), recv, op.received(r.id), r.stream)
	if err != nil || wrong == 0 {
		return 0, "", err
	}
	size := int64(op.Type.Size())
	got := make([]byte, size)
	if err := r.dev.Download(got, recv+cuda.Ptr(first*size)); err != nil {
		return 0, "", err
	}
	return wrong, fmt.Sprintf("rank %d: %d elements wrong, the first is element %d with bytes %x", r.id,
		wrong, first, got), nil
}
