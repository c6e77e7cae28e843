package sym

import "fmt"

// Work is a task of a kernel, and the blocks that process it.
type Work struct {
	Task Task
	// First is the first of the Blocks blocks that share the work evenly, warp by warp. Blocks is 0 if the
	// work is short and lies within one block.
	First, Blocks int
}

// Range is the end of a block's share of the works: it begins where the block before ends, and ends in work
// Hi (an index) after (Frac+1)/65,536 of it.
type Range struct {
	Hi   int
	Frac uint16
}

// Launch is one kernel, launched by NCCL for tasks of one function, reduction and type.
type Launch struct {
	Choice
	Channels int // number of blocks, the length of Ranges
	Works    []Work
	Ranges   []Range // by block
	Bytes    int64   // of all tasks, not rounded, as in NCCL's log line
	// Element is the bytes of an element if the kernel moves single elements, else 0.
	Element int
}

// Line returns NCCL's log line of a kernel, after "NCCL INFO " (symmetric_sched.cc:234).
func (l *Launch) Line() string {
	return fmt.Sprintf("%s [Symmetric]: %d Bytes -> Kernel %s nchannels %d nthreads %d nWorks %d",
		l.Kernel.Func(), l.Bytes, l.Kernel, l.Channels, l.Warps*32, len(l.Works))
}

// NoKernelError says that NCCL fails: a kernel is available for each task but none for all of them together.
// NCCL_SYM_KERNEL names an LL kernel, which executes a single task.
type NoKernelError struct{ Name string }

func (e *NoKernelError) Error() string {
	return fmt.Sprintf("no symmetric kernel available: NCCL_SYM_KERNEL=%s does one task at a time, and the "+
		"group has several; unset it", e.Name)
}

// Launches selects the tasks of a group that symmetric kernels execute; tasks are in the order of NCCL's
// sorter, largest first. It returns their kernels in the order of launch, and the indexes of the remaining
// tasks, in order (scheduler/symmetric_sched.cc:12). For tasks with one buffer in a window takesLL must
// report whether the choice without symmetric kernels is LL; it may be nil if there are no such tasks.
// Errors: a *NoKernelError.
func (c *Comm) Launches(tasks []Task, takesLL func(Task) bool) (out []Launch, rest []int, err error) {
	type key struct{ f, op, typ, win int }
	lists := map[key][]int{}
	var order []key // in the order of first occurrence; the map has no order
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
	for i := range out { // NCCL distributes a kernel's last task differently if no kernel follows
		out[i] = spread(out[i].Choice, out[i].tasks(), i < len(out)-1)
	}
	return out, rest, nil
}

// tasks returns the tasks of a kernel's works.
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

// launch chooses a kernel for tasks of one kind and distributes them; ok is false if there is none.
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

// spread distributes tasks of one function, reduction and type over the blocks of a kernel, cell by cell, one
// task after the other (scheduler/symmetric_sched.cc:109). Tasks are as NCCL handles them (AllGather counts
// bytes). more says that further symmetric kernels of the group follow.
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

// spreader is the position for the next cells: block has room for room of its per cells, and already works of
// other tasks.
type spreader struct {
	l         *Launch
	per, room int64
	block     int
	works     int
}

// work distributes one task. The number of blocks that share a work follows NCCL: a block in the middle or at
// the end of a work counts; the block at its beginning counts only if it has no other work before, or the
// work ends in it.
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

// share counts the block among those that process the work (symmetric_sched.cc:169-190).
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
