package packet

import (
	"slices"

	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// sampled runs flows again, with the rules of the run before, and returns the sampled queue lengths and
// rates.
func sampled(n *Network, flows []Flow, cfg *Config, ordered bool) (*Series, error) {
	e, err := build(n, flows, cfg, ordered, false) // samples need all nodes at the same time
	if err != nil {
		return nil, err
	}
	e.samples = spec.NewSampler(cfg.Every, len(e.links), flows)
	if _, err = e.run(); err != nil {
		return nil, err
	}
	return e.series(), nil
}

// sample records the lengths of queues and the rates of flows at the end of a window, if a sample is due.
// next is the start of the next window (ps).
func (e *engine) sample(end, next int64) error {
	if !e.samples.Due(units.Time(end), units.Time(next)) && e.unfinished > 0 {
		return nil
	}
	for i := range e.links {
		if l := &e.links[i]; l.Queues != nil {
			e.samples.Queue(units.Time(end), l.ID, l.DataHeld())
		}
	}
	e.samples.Flows(units.Time(end), func(i int32) (x spec.RateSample, begun, done bool) {
		r := &e.result[i]
		if done = r.Done || r.Failed; !r.Begun() || r.Failed {
			return x, false, done
		}
		s := &e.snd[i]
		x = spec.RateSample{Rate: e.allowed(s, end), Acked: s.Offset(s.Una, e.cfg.Frames.Payload)}
		return x, true, done
	})
	return e.samples.Full()
}

// allowed returns the rate in bit/s that congestion control allows a sender. DCQCN's timers only run when a
// rate is needed; here they run on a copy.
func (e *engine) allowed(s *sender, now int64) int64 {
	rate := s.Rate
	if e.cfg.CC.Kind == DCQCN {
		reaction := s.Dcqcn
		reaction.Tick(&e.cfg.CC, &rate, now, 0)
	}
	return rate.Rate
}

// series returns the samples of the run.
func (e *engine) series() *spec.Series {
	var pauses []spec.PauseSample
	for i := range e.workers {
		pauses = slices.Concat(pauses, e.workers[i].pauses)
	}
	return e.samples.Ended(pauses)
}
