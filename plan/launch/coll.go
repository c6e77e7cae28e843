package launch

import (
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/internal/channels"
)

// mostChannels returns the number of channels that tasks of a kind may use (enqueue.cc:527).
func mostChannels(c *connect.Layout, k kind) int {
	switch k {
	case nvlsKind:
		return c.NVLSChannels
	case nvlsNetKind:
		return min(c.NChannels, c.NVLSChannels)
	}
	return c.NChannels
}

// layout is a kernel under construction.
type layout struct {
	c       *Comm
	budget  budget
	batches workBatches
	kernel  Kernel
}

func newLayout(c *Comm, mode Mode) *layout {
	return &layout{c: c, budget: budgetOf(c, mode), batches: newBatches(c.Layout.Rules.MaxChannels)}
}

// estimate returns how many tasks at the head of a list NCCL intends to put into a kernel, and the sums of
// their traffic and channels (enqueue.cc:533).
func (l *layout) estimate(tasks []task) (n int, traffic [numKinds]int64, width [numKinds]int) {
	for i := range tasks {
		t := &tasks[i]
		if !l.budget.fits((n+collsInBatch-1)/collsInBatch, int64(n+1)*collBytes) {
			break
		}
		n++
		traffic[t.kind] += channels.LeastTraffic(l.c.Layout, t.Task)
		width[t.kind] = min(width[t.kind]+t.choice.Channels, mostChannels(l.c.Layout, t.kind))
	}
	return n, traffic, width
}

// colls assigns tasks to channels until the kernel is full, and returns their number
// (scheduleCollTasksToPlan, enqueue.cc:519).
func (l *layout) colls(tasks []task) (int, error) {
	n, traffic, width := l.estimate(tasks)
	var cur channels.Spread
	for i := range tasks[:n] {
		t := &tasks[i]
		if i == 0 || t.kind != tasks[i-1].kind {
			cur = channels.NewSpread(l.c.Layout, mostChannels(l.c.Layout, t.kind), traffic[t.kind],
				width[t.kind])
		}
		if even := l.c.Layout.Rules.Plan.EvenBytes; !even && (t.kind == plainKind || t.kind == nvlsKind) {
			cut := cur.Place(t.Task)
			t.req.Cut = &cut
		}
		s, err := build.Split(l.c.Layout, t.req)
		if err != nil {
			return 0, err
		}
		if !l.budget.fits(l.batches.n+s.NChannels, l.batches.bytes+collBytes) {
			return i, nil
		}
		l.place(t, s)
	}
	return n, nil
}

// place adds a task to the kernel.
func (l *layout) place(t *task, s plan.Split) {
	fn := funcOf(t.bin, t.choice)
	for ch := s.ChannelLo; ch <= s.ChannelHi; ch++ {
		l.batches.addColl(ch, fn)
	}
	l.batches.bytes += collBytes
	k := &l.kernel
	k.Threads = max(k.Threads, t.choice.Warps*l.c.Layout.Rules.Plan.WarpLanes())
	k.Tasks = append(k.Tasks, Task{Call: t.call, Req: t.req, Split: s, fn: fn})
}
