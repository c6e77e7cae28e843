package engine

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/wire"
)

// HangError is an operation that never ends because a rank is down: kernels
// poll for what it would send, and NCCL has no timeout for them.
type HangError struct {
	Failed  []int // ranks
	Waiting int   // ranks that wait forever
	First   int   // the lowest of them, -1 where none waits
}

func (e *HangError) Error() string {
	if e.Waiting == 0 {
		return fmt.Sprintf("%s down and never finishes; no other rank waits for it", ranks(e.Failed))
	}
	return fmt.Sprintf("the operation hangs: %s down, and %d others wait for it forever, the first is rank "+
		"%d; "+
		"NCCL has no timeout for that: a watchdog has to call ncclCommAbort", ranks(e.Failed), e.Waiting,
		e.First)
}

// DeadlockError means that the plan stopped before its end: some op waits for
// data or room that never comes.
type DeadlockError struct {
	Waiting       int   // groups that wait
	Rank, Channel int32 // the first of them
	Seq           int32 // and the op it waits in
}

func (e *DeadlockError) Error() string {
	return fmt.Sprintf("simulator: the plan deadlocks: %d groups wait, the first is rank %d channel %d at "+
		"op %d",
		e.Waiting, e.Rank, e.Channel, e.Seq)
}

// ranks is the subject of a sentence: rank 3 is, ranks 3, 4 are.
func ranks(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("rank %d is", list[0])
	}
	return fmt.Sprintf("ranks %s are", strings.Join(strings.Fields(strings.Trim(fmt.Sprint(list), "[]")),
		", "))
}

// hang reports who waits forever for the ranks that are down.
func (e *Engine) hang() error {
	h := &HangError{First: -1}
	for r := range e.Devices {
		switch {
		case e.down[r]:
			h.Failed = append(h.Failed, r)
		case e.Devices[r].Done < e.Devices[r].Job.Kernels:
			if h.Waiting++; h.First < 0 {
				h.First = r
			}
		}
	}
	return h
}

// deadlock returns the reason why no event is left though kernels have not ended.
func (e *Engine) deadlock() error {
	if e.down != nil {
		return e.hang()
	}
	if err := e.Net.Stuck(); err != nil {
		return err
	}
	if m, ok := e.Wire.(wire.Messages); ok {
		if err := m.Why(); err != nil {
			return err
		}
	}
	d := &DeadlockError{}
	for i := range e.Groups {
		if g := &e.Groups[i]; g.state == waiting {
			if d.Waiting == 0 {
				d.Rank, d.Channel, d.Seq = g.Rank, g.Program.Channel, g.Op.Seq
			}
			d.Waiting++
		}
	}
	return d
}

// tooLong is a run that does not end before simulated time does.
func (e *Engine) tooLong() error {
	return &exec.NotImplementedError{Feature: fmt.Sprintf("%v of %d elements that takes more than 26 days",
		e.Jobs[0].Plan.Req.Func, e.Jobs[0].Plan.Req.Count),
		Missing: "simulated time ends there; check the speeds of links and ports, or take a smaller size"}
}
