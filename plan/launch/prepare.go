package launch

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/plan/sym"
)

// devOp is a reduction as device code distinguishes it (ncclDevRedOp_t).
type devOp uint8

const (
	devSum devOp = iota
	devProd
	devMinMax
	devPreMulSum
	devSumPostDiv
)

// bin is the key by which NCCL gathers collectives before it chooses algorithms (enqueue.cc:369).
type bin struct {
	fn  coll.Func
	op  devOp
	typ coll.DataType
}

// binOf returns a call's bin. All-gather and broadcast count bytes and have no reduction.
func binOf(c *Call) bin {
	b := bin{fn: c.Func, typ: c.Type}
	if !c.Func.Reduces() {
		b.typ = coll.Int8
		return b
	}
	switch c.Op {
	case coll.Prod:
		b.op = devProd
	case coll.Min, coll.Max:
		b.op = devMinMax
	case coll.Avg: // enqueue.cc:2266
		if b.op = devSumPostDiv; c.Type.IsFloat() {
			b.op = devPreMulSum
		}
	}
	return b
}

// kernelFunc identifies the device function of a task: consecutive works of a channel with the same function
// form a batch. Signed integers are added as unsigned ones (device/generate.py:132).
type kernelFunc struct {
	bin
	algo  coll.Algorithm
	proto coll.Protocol
}

func funcOf(b bin, ch Choice) kernelFunc {
	unsigned := map[coll.DataType]coll.DataType{coll.Int8: coll.Uint8, coll.Int32: coll.Uint32,
		coll.Int64: coll.Uint64}
	if u, ok := unsigned[b.typ]; ok && b.fn.Reduces() && (b.op != devMinMax || !ch.Algo.IsNVLS()) {
		b.typ = u
	}
	return kernelFunc{b, ch.Algo, ch.Proto}
}

// task is a collective of the group while algorithms and kernels are chosen.
type task struct {
	call    int   // index
	traffic int64 // computed before a protocol is chosen
	size    int   // NCCL's size bin
	bin     bin
	choice  Choice
	req     plan.Request
	kind    kind
	channels.Task
}

// kind selects the limit on a task's channels: that of NVLS, of CollNet, or of others (enqueue.cc:527).
type kind uint8

const (
	plainKind kind = iota
	nvlsKind
	netKind
	nvlsNetKind
	numKinds
)

func kindOf(a coll.Algorithm, nodes int) kind {
	switch {
	case a == coll.NVLS && nodes > 1:
		return nvlsNetKind
	case a.IsNVLS():
		return nvlsKind
	case a.IsCollNet():
		return netKind
	}
	return plainKind
}

// sizeBin returns the bin of a traffic in NCCL's sorter: KiB up to 1 GiB, four bins for each power of two
// (comm.h:299).
func sizeBin(traffic int64) int {
	x := min(traffic, 1<<30) >> 10
	n := bits.Len64(uint64(x))
	if n < 3 {
		return int(x)
	}
	return (n-2)<<2 | int(x>>(n-3))&3
}

// prepare makes the tasks of all collectives and orders them as NCCL assigns them to channels: by kind; by
// bin, the bin with the largest call first; by size, the smallest first (enqueue.cc:347-437). Symmetric
// kernels are returned separately, with the calls that they execute.
func prepare(c *Comm, calls []Call) (tasks []task, symmetric []Kernel, err error) {
	n := c.Layout.NRanks
	for i := range calls {
		if call := &calls[i]; !call.p2p() && call.Func.Valid() && call.Count > 0 {
			t := task{call: i, traffic: int64(call.Bytes()) * channels.TrafficPerByte(call.Func, n),
				bin: binOf(call)}
			t.size = sizeBin(t.traffic)
			tasks = append(tasks, t)
		}
	}
	// NCCL's sorter is a stack in every size bin: of equal tasks the last comes first.
	slices.SortFunc(tasks, func(a, b task) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(b.call, a.call))
	})
	if tasks, symmetric, err = takeSymmetric(c, calls, tasks); err != nil {
		return nil, nil, err
	}
	perChannel := max(1, (len(tasks)+c.Layout.NChannels-1)/c.Layout.NChannels)
	byKind := [numKinds][]task{}
	for _, set := range gather(tasks) {
		for len(set) > 0 {
			part := together(set)
			set = set[len(part):]
			if err := choose(c, calls, part, perChannel); err != nil {
				return nil, nil, err
			}
			byKind[part[0].kind] = append(byKind[part[0].kind], part...)
		}
	}
	return slices.Concat(byKind[:]...), symmetric, nil
}

// takeSymmetric separates the calls that symmetric kernels execute (scheduler/symmetric_sched.cc:15).
func takeSymmetric(c *Comm, calls []Call, tasks []task) (rest []task, symmetric []Kernel, err error) {
	if c.Symmetric == nil || len(tasks) == 0 {
		return tasks, nil, nil
	}
	list := make([]sym.Task, len(tasks))
	for i, t := range tasks {
		call := &calls[t.call]
		list[i] = sym.Task{Func: call.Func, Op: call.Op, Type: call.Type, Count: call.Count,
			Windows: call.Windows}
	}
	launches, left, err := c.Symmetric.Launches(list, func(t sym.Task) bool {
		ch, err := c.Choose(Op{Func: t.Func, Type: t.Type, RedOp: t.Op, Count: t.Count, Pipe: 1})
		return err == nil && ch.Proto == coll.LL
	})
	if err != nil {
		return nil, nil, err
	}
	for _, i := range left {
		rest = append(rest, tasks[i])
	}
	for i := range launches {
		symmetric = append(symmetric, Kernel{Symmetric: &launches[i],
			Threads: launches[i].Warps * plan.WarpSize})
	}
	return rest, symmetric, nil
}

// gather divides sorted tasks by bin, bins in the order of their first task, each reversed: by size
// ascending, and in program order within a size bin.
func gather(tasks []task) [][]task {
	var sets [][]task
	at := map[bin]int{}
	for _, t := range tasks {
		i, ok := at[t.bin]
		if !ok {
			i = len(sets)
			at[t.bin] = i
			sets = append(sets, nil)
		}
		sets[i] = append(sets[i], t)
	}
	for _, s := range sets {
		slices.Reverse(s)
	}
	return sets
}

// together returns the tasks at the head of a set that share one algorithm: those with less than four times
// the traffic of the first (enqueue.cc:393).
func together(set []task) []task {
	n := 1
	for n < len(set) && set[n].traffic < 4*set[0].traffic {
		n++
	}
	return set[:n]
}

// choose chooses an algorithm for tasks together, by the sum of their counts, and sets the fields that follow
// from it.
func choose(c *Comm, calls []Call, part []task, perChannel int) error {
	first := &calls[part[0].call]
	op := Op{Func: first.Func, Type: first.Type, RedOp: first.Op, Pipe: perChannel}
	for i := range part {
		call := &calls[part[i].call]
		count := call.Count
		if !call.Func.Reduces() { // bytes: types may differ
			op.Type = coll.Int8
			count *= int64(call.Type.Size())
		}
		op.Count += count
	}
	ch, err := c.Choose(op)
	if err != nil {
		return fmt.Errorf("choose for %v of %d elements: %w", op.Func, op.Count, err)
	}
	for i := range part {
		t := &part[i]
		call := &calls[t.call]
		t.choice, t.kind = ch, kindOf(ch.Algo, c.Layout.NNodes)
		t.req = call.request()
		t.req.Algo, t.req.Proto, t.req.Channels, t.req.Warps = ch.Algo, ch.Proto, ch.Channels, ch.Warps
		t.req.SlowNVLS, t.req.Params = c.SlowNVLS, c.Params
		if c.Register != nil {
			if err := c.Register(&t.req, call); err != nil {
				return err
			}
			t.choice.Channels = t.req.Channels
		}
		t.Task = channels.TaskOf(c.Layout, &t.req)
	}
	return nil
}
