package sym

import "fmt"

// Work is a task of a kernel, and which blocks do it.
type Work struct {
	Task Task
	// First is the first of Blocks that share the work evenly, warp by warp. Blocks is
	// 0 where the work is short and lies in a part of one block.
	First, Blocks int
}

// Range is the part of the works that a block ends with: it begins where the block
// before ends, and ends in work Hi (an index) after Frac of 65,536 parts, less one.
type Range struct {
	Hi   int
	Frac uint16
}

// Launch is one kernel: what NCCL launches for tasks of one function, reduction and
// type.
type Launch struct {
	Choice
	Channels int // blocks that run, those of Ranges
	Works    []Work
	Ranges   []Range // by block
	Bytes    int64   // of all tasks, not rounded, as NCCL's log line has them
	// Element is 0, or of a kernel that moves single elements how many bytes one has.
	Element int
}

// Line is NCCL's log line of a kernel, after "NCCL INFO " (symmetric_sched.cc:234).
func (l *Launch) Line() string {
	return fmt.Sprintf("%s [Symmetric]: %d Bytes -> Kernel %s nchannels %d nthreads %d nWorks %d",
		l.Kernel.Func(), l.Bytes, l.Kernel, l.Channels, l.Warps*32, len(l.Works))
}

// NoKernelError says that NCCL fails where it found a kernel available for each task
// but has none for all of them: NCCL_SYM_KERNEL names one of LL, which does one task.
type NoKernelError struct{ Name string }

func (e *NoKernelError) Error() string {
	return fmt.Sprintf("no symmetric kernel available: NCCL_SYM_KERNEL=%s does one task at a time, and the "+
		"group has several; unset it", e.Name)
}

// Launches takes those tasks that go by symmetric kernels out of the tasks of a group,
// which come in the order of NCCL's sorter, largest first. It returns their kernels in
// order of launch, and the indices of the tasks that remain, in order
// (scheduler/symmetric_sched.cc:12). For one buffer in a window take must say whether
// the choice without symmetric kernels is LL; it may be nil where all or no buffers
// are in windows. Errors: a *NoKernelError.
func (c *Comm) Launches(tasks []Task, takesLL func(Task) bool) (out []Launch, rest []int, err error) {
	type key struct{ f, op, typ, win int }
	lists := map[key][]int{}
	var order []key // by first occurrence, for a map has none
	if c.Rules != nil && c.Rules.Tasks == 1 && len(tasks) != 1 {
		return nil, upTo(len(tasks)), nil
	}
	for i, t := range tasks {
		if !c.Available(t) {
			rest = append(rest, i)
			continue
		}
		n := t.normal()
		k := key{int(n.Func), int(n.Op), int(n.Type), int(n.Windows)}
		if len(lists[k]) == 0 {
			order = append(order, k)
		}
		lists[k] = append(lists[k], i)
	}
	for _, k := range order {
		list := lists[k]
		for end := len(list); end > 0; { // smallest first
			from := max(0, end-c.Rules.Tasks)
			part := make([]Task, 0, end-from)
			for i := end - 1; i >= from; i-- {
				part = append(part, tasks[list[i]].normal())
			}
			l, ok := c.launch(part)
			switch {
			case !ok && !c.Rules.OneBuffer:
				return nil, nil, &NoKernelError{c.Params.Kernel.Value}
			case !ok, l.IfLL && (takesLL == nil || !takesLL(tasks[list[end-1]])):
				for i := end - 1; i >= from; i-- {
					rest = append(rest, list[i])
				}
			default:
				out = append(out, l)
			}
			end = from
		}
	}
	for i := range out { // NCCL spreads a kernel's last task otherwise where no kernel follows
		out[i] = spread(out[i].Choice, out[i].tasks(), i < len(out)-1)
	}
	return out, rest, nil
}

// tasks are those of a kernel's works.
func (l *Launch) tasks() []Task {
	out := make([]Task, len(l.Works))
	for i := range out {
		out[i] = l.Works[i].Task
	}
	return out
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// launch chooses for tasks of one kind and spreads them.
func (c *Comm) launch(tasks []Task) (Launch, bool) {
	cell := CellSize / int64(tasks[0].Type.Size())
	total, most := int64(0), int64(0)
	for _, t := range tasks {
		n := alignUp(t.Count, cell)
		total, most = total+n, max(most, n)
	}
	ch, ok := c.pick(tasks[0], total, most, len(tasks))
	if !ok {
		return Launch{}, false
	}
	return spread(ch, tasks, false), true
}

// spread lays tasks of one function, reduction and type on the blocks of a kernel,
// cell by cell, one after the other (scheduler/symmetric_sched.cc:109). Tasks are in
// NCCL's own view: those of an AllGather are of bytes. more says that the group has
// further symmetric kernels after this one.
func spread(ch Choice, tasks []Task, more bool) Launch {
	size := int64(tasks[0].Type.Size())
	cell := CellSize / size
	total := int64(0)
	l := Launch{Choice: ch, Works: make([]Work, len(tasks)), Ranges: make([]Range, ch.Blocks)}
	for _, t := range tasks {
		total += alignUp(t.Count, cell)
		l.Bytes += t.Count * size
	}
	blocks := int64(ch.Blocks)
	per := divUp(divUp(total, blocks), cell)
	s := spreader{l: &l, per: per, room: per}
	for i, t := range tasks {
		l.Works[i].Task = t
		s.work(i, divUp(t.Count, cell), i == len(tasks)-1 && !more)
	}
	if l.Channels = s.block; s.room < s.per {
		l.Channels++
	}
	l.Ranges = l.Ranges[:l.Channels]
	return l
}

// spreader is where the next cells go: room of per cells is left on block, which has
// works of other tasks.
type spreader struct {
	l         *Launch
	per, room int64
	block     int
	works     int
}

// work lays one task. The count of blocks that share a work follows NCCL: a block in
// the middle or at the end of a work counts, and at its beginning only where the
// block has no other work before it, or the work ends in it.
func (s *spreader) work(i int, cells int64, last bool) {
	w := &s.l.Works[i]
	for left := cells; s.block < len(s.l.Ranges); {
		s.share(w, left, cells, last)
		r := &s.l.Ranges[s.block]
		r.Hi = i
		if left <= s.room {
			r.Frac = 0xffff
			if left < s.room {
				s.room -= left
				s.works++
			} else {
				s.next()
			}
			return
		}
		left -= s.room
		r.Frac = uint16(divUp(0x10000*(cells-left), cells) - 1)
		s.next()
	}
}

func (s *spreader) next() { s.block, s.room, s.works = s.block+1, s.per, 0 }

// share counts the block among those that do the work (symmetric_sched.cc:169-190).
func (s *spreader) share(w *Work, left, cells int64, last bool) {
	switch {
	case s.works > 0 && cells > s.room: // begins here beside others
	case s.works > 0, w.Blocks == 0:
		w.First, w.Blocks = s.block, 1
	case left > s.room, (s.room-left)*CellSize <= 1<<10, last:
		w.Blocks++
	}
}

func divUp(n, by int64) int64 { return (n + by - 1) / by }
