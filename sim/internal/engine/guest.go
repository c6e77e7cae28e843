package engine

import (
	"fmt"

	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/units"
)

// An engine may run beside others, over links that they share: who calls it then
// keeps the clock, names the flows that are through and starts each device when its
// kernel begins. Run is not used.

// Attend makes an engine ready to run beside others.
func (e *Engine) Attend() {
	e.running = 0
	for i := range e.Devices {
		if e.Devices[i].SMs > 0 {
			e.running++
		}
	}
}

// StartDevice begins a device's kernel at a time, the present one or later; its own begin takes so
// many times as long.
func (e *Engine) StartDevice(di int32, at units.Time, times float64) {
	e.Queue.Now = max(e.Queue.Now, at)
	if d := &e.Devices[di]; d.SMs > 0 {
		e.startKernel(di, at+units.Time(float64(d.Job.Gap)*times))
	} else if e.Ended != nil { // it has no part in the operation
		e.Ended(di, at)
	}
}

// Stretch has what the kernels wait for take so many times as long from now on: flags, fences,
// credits, beside Slow, which is by rank and of what they do.
func (e *Engine) Stretch(times float64) {
	c := *e.Class
	c.Wait(times)
	e.Cost = costsOf(&c)
}

// Due is when the next event is, ok false without one.
func (e *Engine) Due() (at units.Time, ok bool) { return e.Queue.Next() }

// Turn handles the events up to a time.
func (e *Engine) Turn(now units.Time) error {
	var ev event.Event
	for e.err == nil {
		at, ok := e.Queue.Next()
		if !ok || at > now {
			break
		}
		e.Queue.Pop(&ev)
		e.Queue.Now = ev.At
		e.handle(&ev)
	}
	return e.err
}

// Landed handles flows that are through at a time, by their tokens.
func (e *Engine) Landed(now units.Time, tokens []int32) error {
	e.Queue.Now = now
	for _, tok := range tokens {
		if tok >= 0 {
			e.Groups[tok].flow = -1
		}
	}
	for _, tok := range tokens {
		e.flowDone(tok)
	}
	return e.err
}

// Through reports whether all devices are.
func (e *Engine) Through() bool { return e.running == 0 }

// Stuck describes what an engine without events waits for.
func (e *Engine) Stuck() string {
	if d, ok := e.deadlock().(*DeadlockError); ok && d.Waiting > 0 {
		return fmt.Sprintf("%d thread groups wait, the first is rank %d channel %d", d.Waiting, d.Rank,
			d.Channel)
	}
	return "kernels have not begun"
}
