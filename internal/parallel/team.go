// Package parallel executes numbered tasks on several workers, round after round. A task has a preferred
// worker, whose cache has its data; others take it only if that one is late. Each and Cache are for calls
// without rounds.
//
// In: the tasks, their workers, and the tasks of each round. What it must not know: what the tasks do; their
// result must not depend on the worker.
package parallel

import (
	"sync"
	"sync/atomic"
)

// How often a worker polls: before it takes tasks of others, one or two microseconds; before it sleeps, some
// hundred, about the time of a wake-up; and before it sleeps while others still work, about a millisecond,
// because it would be late in the next round.
const (
	spinsAlone = 1 << 12
	spins      = 1 << 18
	spinsBusy  = 1 << 21
	glance     = 1 << 10 // looks between two at whether others work
)

// Where the caller has waited so long for others that it sleeps, other programs have their processors: it
// does the next rounds alone, at first some hundred, and twice as many each time that this happens again.
const (
	leastAlone = 1 << 9
	mostAlone  = 1 << 15
)

// Team is a set of workers, the first of which is the caller of Do. Fields that workers poll have their own
// cache lines.
type Team struct {
	do     func(task int)
	orders []order // by worker
	tasks  []task
	_      [64]byte
	left   atomic.Int64 // tasks of the round that are not done
	_      [56]byte
	round  atomic.Uint64
	over   atomic.Bool
	asleep atomic.Int32 // workers that sleep
	_      [44]byte
	alone  int // rounds that the caller does alone from now on
	pause  int // as many the next time, at least
	// awaited: the caller sleeps.
	awaited atomic.Bool
	lock    sync.Mutex
	wake    sync.Cond // of workers
	ready   sync.Cond // of the caller
	ended   sync.WaitGroup
}

// task is padded to a cache line.
type task struct {
	open atomic.Bool // of the round, and not taken yet
	_    [60]byte
}

// New starts n-1 workers; the caller of Do is worker 0. Task i belongs to worker of[i] < n.
func New(n int, of []int32, do func(task int)) *Team {
	t := &Team{do: do, orders: make([]order, n), tasks: make([]task, len(of))}
	t.wake.L, t.ready.L = &t.lock, &t.lock
	for w := range t.orders {
		t.orders[w] = orderOf(int32(w), of)
		if w > 0 {
			t.ended.Go(func() { t.work(w) })
		}
	}
	return t
}

// order is the order in which a worker takes tasks: its own first, then those of others, the last ones first.
type order struct {
	tasks []int32
	own   int
}

func orderOf(w int32, of []int32) (o order) {
	for i, whose := range of {
		if whose == w {
			o.tasks = append(o.tasks, int32(i))
		}
	}
	o.own = len(o.tasks)
	for i := len(of) - 1; i >= 0; i-- {
		if of[i] != w {
			o.tasks = append(o.tasks, int32(i))
		}
	}
	return o
}

// Do executes tasks and returns when all have ended.
func (t *Team) Do(tasks []int32) {
	if t.alone--; t.alone >= 0 || len(tasks) < 2 || len(t.orders) < 2 {
		for _, i := range tasks {
			t.do(int(i))
		}
		return
	}
	t.share(tasks)
}

// share distributes the tasks to all workers and takes part.
func (t *Team) share(tasks []int32) {
	t.left.Store(int64(len(tasks)))
	for _, i := range tasks {
		t.tasks[i].open.Store(true)
	}
	t.call()
	t.take(0)
	for i := 0; t.left.Load() > 0; i++ {
		if i == spinsBusy {
			t.await()
			t.alone = max(leastAlone, t.pause)
			t.pause = min(2*t.alone, mostAlone)
			return
		}
	}
	t.alone, t.pause = 0, t.pause-1
}

// Dismiss ends the workers and waits for them; Do must not be called afterwards.
func (t *Team) Dismiss() {
	t.over.Store(true)
	t.call()
	t.ended.Wait()
}

// call starts a round and wakes sleeping workers.
func (t *Team) call() {
	t.round.Add(1)
	if t.asleep.Load() > 0 {
		t.lock.Lock()
		t.wake.Broadcast()
		t.lock.Unlock()
	}
}

// await sleeps until all tasks of the round have ended.
func (t *Team) await() {
	t.lock.Lock()
	t.awaited.Store(true)
	for t.left.Load() > 0 {
		t.ready.Wait()
	}
	t.awaited.Store(false)
	t.lock.Unlock()
}

// work executes the tasks of worker w, round after round.
func (t *Team) work(w int) {
	for round := uint64(0); ; {
		t.attend(round)
		round = t.round.Load()
		if t.over.Load() {
			return
		}
		t.take(w)
	}
}

// attend waits for a round that is not this one, at first without sleeping.
func (t *Team) attend(round uint64) {
	for idle, busy := 1, 0; t.round.Load() == round; idle++ {
		if idle%glance == 0 && t.left.Load() > 0 {
			busy, idle = busy+idle, 0
		}
		if idle == spins || busy >= spinsBusy {
			t.sleep(round)
			return
		}
	}
}

// sleep waits for a round that is not this one.
func (t *Team) sleep(round uint64) {
	t.lock.Lock()
	t.asleep.Add(1)
	for t.round.Load() == round {
		t.wake.Wait()
	}
	t.asleep.Add(-1)
	t.lock.Unlock()
}

// take executes the worker's own tasks and, after some polls, those that others have not begun. A late worker
// may take tasks of the next round.
func (t *Team) take(w int) {
	o := &t.orders[w]
	for _, i := range o.tasks[:o.own] {
		t.try(i)
	}
	for i := 0; i < spinsAlone && t.left.Load() > 0; i++ {
	}
	if t.left.Load() > 0 {
		for _, i := range o.tasks[o.own:] {
			t.try(i)
		}
	}
}

// try executes a task if no worker has taken it.
func (t *Team) try(i int32) {
	open := &t.tasks[i].open
	if !open.Load() || !open.CompareAndSwap(true, false) {
		return
	}
	t.do(int(i))
	if t.left.Add(-1) == 0 && t.awaited.Load() {
		t.lock.Lock()
		t.ready.Signal()
		t.lock.Unlock()
	}
}
