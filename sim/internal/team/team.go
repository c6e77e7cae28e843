// Package team lets workers do numbered tasks side by side: a worker that is free takes the next one.
//
// In: what a task is, and rounds of so many tasks. It must not know what they do, and who did
// which must not matter.
package team

import (
	"sync"
	"sync/atomic"
)

// spins is how often a worker looks for what it waits for before it sleeps: some
// microseconds, about as long as it takes to be woken.
const spins = 1 << 13

// Team is workers, of whom the first is the caller of Do.
type Team struct {
	do      func(task int)
	workers int
	tasks   int64        // of the round
	left    atomic.Int64 // of them, those that no worker has taken
	done    atomic.Int64
	round   atomic.Uint64
	over    atomic.Bool
	asleep  atomic.Int32 // workers that sleep
	awaited atomic.Bool  // the caller sleeps
	lock    sync.Mutex
	wake    sync.Cond // of workers
	ready   sync.Cond // of the caller
	ended   sync.WaitGroup
}

// New starts n workers but the first.
func New(n int, do func(task int)) *Team {
	t := &Team{do: do, workers: n}
	t.wake.L, t.ready.L = &t.lock, &t.lock
	for range n - 1 {
		t.ended.Go(t.work)
	}
	return t
}

// Do has tasks 0 to n-1 done, and returns when all are.
func (t *Team) Do(n int) {
	if n < 2 || t.workers < 2 {
		for i := range n {
			t.do(i)
		}
		return
	}
	t.tasks = int64(n)
	t.done.Store(0)
	t.left.Store(int64(n))
	t.call()
	t.take()
	for i := 0; t.done.Load() < t.tasks; i++ {
		if i == spins {
			t.await()
			return
		}
	}
}

// Dismiss ends the workers.
func (t *Team) Dismiss() {
	t.over.Store(true)
	t.call()
	t.ended.Wait()
}

// call begins a round.
func (t *Team) call() {
	t.round.Add(1)
	if t.asleep.Load() > 0 {
		t.lock.Lock()
		t.wake.Broadcast()
		t.lock.Unlock()
	}
}

// await sleeps until the round is over.
func (t *Team) await() {
	t.lock.Lock()
	t.awaited.Store(true)
	for t.done.Load() < t.tasks {
		t.ready.Wait()
	}
	t.awaited.Store(false)
	t.lock.Unlock()
}

// work follows one round after the other.
func (t *Team) work() {
	for round := uint64(0); ; {
		for i := 0; t.round.Load() == round; i++ {
			if i == spins {
				t.sleep(round)
				break
			}
		}
		round = t.round.Load()
		if t.over.Load() {
			return
		}
		t.take()
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

// take does tasks until none is left: those with low numbers first. A worker that comes
// late may take tasks of the next round.
func (t *Team) take() {
	for {
		i := t.left.Add(-1)
		if i < 0 {
			return
		}
		n := t.tasks
		t.do(int(n - 1 - i))
		if t.done.Add(1) == n && t.awaited.Load() {
			t.lock.Lock()
			t.ready.Signal()
			t.lock.Unlock()
		}
	}
}
