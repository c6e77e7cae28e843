package packet

import (
	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/sim/wire/packet/internal/streams"
	"github.com/simccl/simccl/units"
)

// Congestion control: its settings, by name (Preset) or one by one.
type (
	CC          = cc.Params
	CCKind      = cc.Kind
	SwiftParams = cc.SwiftParams
)

// Congestion controls.
const (
	NoCC   = cc.None
	DCQCN  = cc.DCQCN
	HPCC   = cc.HPCC
	Timely = cc.Timely
	DCTCP  = cc.DCTCP
	Swift  = cc.Swift
	Pint   = cc.Pint
	NSCC   = cc.NSCC
)

// Presets are the names of Preset.
const Presets = cc.Presets

// Preset is a congestion control by name, for hosts of a rate in bit/s.
func Preset(name string, rate int64) (CC, error) { return cc.Preset(name, rate) }

// ccBuild makes room for the state of senders.
func (e *engine) ccBuild() {
	e.controls = cc.NewFlows(&e.cfg.CC, len(e.flows), e.cfg.Frames.Payload, e.cfg.Frames.Header)
	if e.cfg.CC.Kind == Pint {
		e.seen = make([]uint64, len(e.flows))
	}
}

// ccOpen sets a new sender up whose route has so many links.
func (e *engine) ccOpen(id int32, s *sender, links int) {
	rtt := e.cfg.CC.BaseRTT
	if f := &e.flows[id]; f.BaseRTT > 0 {
		rtt = f.BaseRTT
	}
	if e.cfg.CC.ByRoute {
		rtt = e.roundTrip(id, s, links)
		s.window = max(1, int64(float64(s.Line)/8*float64(rtt)/1e12))
	}
	if e.cfg.CC.Kind == DCQCN {
		s.dcqcn = cc.NewReaction(s.Line)
		return
	}
	e.controls.Open(id, &s.Rate, &s.window, rtt, links)
}

// roundTrip is that of a full frame and its acknowledgement over so many links each.
func (e *engine) roundTrip(id int32, s *sender, links int) (ps units.Time) {
	for i := range uint32(links) {
		there, back := &e.links[e.hops[s.route+i]], &e.links[e.hops[e.rcv[id].back+i]]
		ps += units.Time(there.delay + there.whole + back.delay + back.ack)
	}
	return ps
}

// ccStamp writes into a data frame what the control reads from its
// acknowledgement.
func (e *engine) ccStamp(f *frame, now int64) {
	if k := e.cfg.CC.Kind; k == NoCC || k == DCQCN {
		return
	}
	if aux, ok := e.controls.Sent(f.flow, f.psn, now); ok {
		f.aux = aux
	}
}

// ccAck lets the control see an acknowledgement.
func (e *engine) ccAck(w *worker, h *host, f *frame, s *sender, acked uint32) {
	c := &e.cfg.CC
	switch c.Kind {
	case NoCC:
		return
	case DCQCN:
		if f.flags&flagCE != 0 && !s.ended {
			s.dcqcn.Notify(c, &s.Rate, f.at, e.notice(w, f.at))
		}
		return
	case HPCC:
		if rate, ok := e.controls.Telemetry(f.flow).Ack(c, &s.Rate, f.aux, f.psn, s.nxt); ok {
			e.shift(w, h, s, rate, f.at)
		}
		return
	}
	a := cc.Ack{Now: f.at, Aux: f.aux, Psn: f.psn, Next: s.nxt, Acked: acked, Flight: e.flight(s), Each: e.cfg.Repair.Selective,
		Marked: f.flags&flagCE != 0, Gap: f.flags&flagNack != 0, Report: f.flags&flagSack != 0}
	if c.Kind == Pint {
		e.seen[f.flow]++
		a.Skipped = streams.Hash(e.cfg.Seed, f.flow, drawSample, e.seen[f.flow]) >= c.PintShare
	}
	if rate, ok := e.controls.Ack(f.flow, &s.Rate, &s.window, &a); ok {
		e.shift(w, h, s, rate, f.at)
	}
}

// lossSeen lets the control see a loss.
func (e *engine) lossSeen(id int32, s *sender, now int64, timeouts int32) {
	if e.cfg.CC.Kind == Swift || e.cfg.CC.Kind == NSCC {
		e.controls.Loss(id, &s.Rate, &s.window, now, e.flight(s), timeouts)
	}
}
