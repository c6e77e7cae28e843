package packet

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/port"
)

// Congestion control: its settings, by name (Preset) or one by one.
type (
	CC     = cc.Params
	CCKind = cc.Kind
)

// Short names of package cc's algorithms.
const (
	NoCC   = cc.None
	DCQCN  = cc.DCQCN
	HPCC   = cc.HPCC
	Timely = cc.Timely
	DCTCP  = cc.DCTCP
	Swift  = cc.Swift
	NSCC   = cc.NSCC
)

// Presets lists the names that Preset takes, for help and errors.
const Presets = cc.Presets

// Preset returns the parameters of a named congestion control for hosts of a rate in bit/s. Error:
// *InputError for an unknown name.
func Preset(name string, rate int64) (CC, error) { return cc.Preset(name, rate) }

// ccBuild allocates the congestion-control state of all flows (the state itself is set by ccOpen).
func (e *engine) ccBuild() {
	e.controls = cc.NewFlows(&e.cfg.CC, len(e.flows), e.cfg.Frames.Payload, e.cfg.Frames.Header)
	e.controls.InOrder = e.live == nil && e.cfg.InOrder()
}

// ccOpen initializes congestion control for a queue pair whose route has the given number of links. With
// CC.ByRoute, base RTT and window follow from the route.
func (e *engine) ccOpen(id int32, s *sender, links int) {
	rtt := e.cfg.CC.BaseRTT
	if f := &e.flows[id]; f.BaseRTT > 0 {
		rtt = f.BaseRTT
	}
	if e.cfg.CC.ByRoute {
		rtt = port.RoundTrip(e.cfg, e.links, e.hops[s.Route:][:links], e.hops[e.rcv[id].Back:][:links])
		s.Window = max(1, int64(float64(s.Line)/8*float64(rtt)/1e12))
	}
	if e.cfg.CC.Kind == DCQCN {
		s.Dcqcn = cc.NewReaction(s.Line)
		return
	}
	if err := e.controls.Open(id, &s.Rate, &s.Window, rtt, links, s.Bytes); err != nil {
		e.broken = err
	}
}

// ccAck updates a queue pair's rate and window by an acknowledgement that newly acknowledges acked frames.
func (e *engine) ccAck(w *worker, h *host, f *frame, s *sender, acked uint32) {
	c := &e.cfg.CC
	switch c.Kind {
	case HPCC:
		if rate, ok := e.controls.Seen(f.Flow, &s.Rate, s.Window, f.Aux, f.Flags&flagSack != 0, f.Psn,
			s.Nxt); ok {
			e.shift(w, h, s, rate, f.At)
		}
		return
	case DCQCN:
		if f.Flags&flagCE != 0 && (!s.Ended || e.cfg.Repair.Stubborn()) {
			s.Dcqcn.Notify(c, &s.Rate, f.At, e.leadTime(w, f.At))
		}
		return
	case NoCC:
		return
	}
	a := cc.Ack{Now: f.At, Aux: f.Aux, Psn: f.Psn, Next: s.Nxt, Acked: acked,
		Flight: s.Flight(e.cfg.Buffer.Trim > 0), Each: e.cfg.Repair.Selective,
		Marked: f.Flags&flagCE != 0, Gap: f.Flags&flagNack != 0, Report: f.Flags&flagSack != 0}
	if rate, ok := e.controls.Ack(f.Flow, &s.Rate, &s.Window, &a); ok {
		e.shift(w, h, s, rate, f.At)
	}
}

// lossSeen lets the window-based controls (Swift, NSCC) react to a loss.
func (e *engine) lossSeen(id int32, s *sender, now int64, timeouts int32) {
	if e.cfg.CC.Kind == Swift || e.cfg.CC.Kind == NSCC {
		e.controls.Loss(id, &s.Rate, &s.Window, now, s.Flight(e.cfg.Buffer.Trim > 0), timeouts)
	}
}

// shift changes a queue pair's rate and moves its next start by the difference of the two gaps: a frame that
// is already sent is paced as if the new rate had held.
func (e *engine) shift(w *worker, h *host, s *sender, rate, now int64) {
	sooner := rate > s.Rate.Rate || s.NextAvail < h.Wake // known before the gap ends
	if size := int(s.Last); rate != s.Rate.Rate {
		gap, before, full := e.cfg.Lasts(size, rate), s.Gap, s.Last == e.full && s.Gap > 0 &&
			!e.cfg.CC.Unpaced
		if !full {
			before = e.cfg.Lasts(size, s.Rate.Rate)
		}
		s.NextAvail += gap - before
		if s.Set(rate); full {
			s.Gap = gap
		}
	}
	h.Paced = min(h.Paced, s.NextAvail)
	if h.Wake > now && sooner && s.NextAvail < h.Wake {
		h.Wake = max(s.NextAvail, now)
		e.notePacing(w, h, now)
	}
}
