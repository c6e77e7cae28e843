package engine

import (
	"github.com/simccl/simccl/sim/internal/event"
	"github.com/simccl/simccl/units"
)

// An engine may run beside others, over links that they share: who calls it then
// keeps the clock, names the flows that are through and starts each device when its
// kernel begins. Run is not used.

// Prepare makes an engine ready to run beside others that share its links: the caller keeps the clock.
func (e *Engine) Prepare() {
	e.running = 0
	for i := range e.Devices {
		if e.Devices[i].SMs > 0 {
			e.running++
		}
	}
}

// StartDevice starts a device's kernel at a time, now or later. times scales the time by which it starts late
// by itself (Job.Gap).
func (e *Engine) StartDevice(di int32, at units.Time, times float64) {
	e.Queue.Now = max(e.Queue.Now, at)
	if d := &e.Devices[di]; d.SMs > 0 {
		e.startKernel(di, at+units.Time(float64(d.Job.Gap)*times))
	} else if e.Ended != nil { // it has no part in the operation
		e.Ended(di, at)
	}
}

// SetSlowdown multiplies the times for which kernels wait (flags, fences, credits) by times from now on. What
// kernels do is scaled by Slow, by rank.
func (e *Engine) SetSlowdown(times float64) {
	c := *e.Class
	c.Wait(times)
	e.Cost = costsOf(&c)
}

// NextEvent returns the time of the next event; ok is false without one.
func (e *Engine) NextEvent() (at units.Time, ok bool) { return e.Queue.Next() }

// RunUntil handles the events up to a time, inclusive.
func (e *Engine) RunUntil(now units.Time) error {
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

// FlowsDone handles flows, by their tokens, whose last byte has crossed the links at a time.
func (e *Engine) FlowsDone(now units.Time, tokens []int32) error {
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

// Done reports whether the kernels of all devices have ended.
func (e *Engine) Done() bool { return e.running == 0 }
