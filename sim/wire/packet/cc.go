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
)

// Presets are the names of Preset.
const Presets = cc.Presets

// Preset is a congestion control by name, for hosts of a rate in bit/s.
func Preset(name string, rate int64) (CC, error) { return cc.Preset(name, rate) }

// ccBuild makes the state that only some controls need.
func (e *engine) ccBuild() {
	switch e.cfg.CC.Kind {
	case HPCC:
		e.hp = make([]*cc.Telemetry, len(e.flows))
	case Timely:
		e.ti = make([]cc.Gradient, len(e.flows))
	case DCTCP:
		e.dc = make([]cc.Share, len(e.flows))
	case Swift:
		e.sw = make([]cc.Delay, len(e.flows))
	case Pint:
		e.pi, e.seen = make([]cc.Coded, len(e.flows)), make([]uint64, len(e.flows))
	}
}

// ccOpen sets a new sender up whose route has so many links.
func (e *engine) ccOpen(id int32, s *sender, links int) {
	switch e.cfg.CC.Kind {
	case DCQCN:
		s.dcqcn = cc.NewReaction(s.Line)
	case HPCC:
		rtt := e.cfg.CC.BaseRTT
		if f := &e.flows[id]; f.BaseRTT > 0 {
			rtt = f.BaseRTT
		}
		e.hp[id] = cc.NewTelemetry(s.Line, int64(rtt/units.Nanosecond), s.window, e.cfg.Frames.Payload)
	case Timely:
		e.ti[id] = cc.NewGradient(s.Line)
	case DCTCP:
		e.dc[id] = cc.NewShare()
	case Pint:
		e.pi[id] = cc.NewCoded(s.Line)
	case Swift:
		e.sw[id] = cc.NewDelay(&e.cfg.CC.Swift, links-1)
		e.delays(id, s)
	}
}

// ccStamp writes into a data frame what the control reads from its
// acknowledgement.
func (e *engine) ccStamp(f *frame, now int64) {
	switch e.cfg.CC.Kind {
	case HPCC:
		f.aux = f.psn
		e.hp[f.flow].Send(f.psn)
	case Timely, Swift:
		f.aux = uint32(now / 1000)
	}
}

// ccAck lets the control see an acknowledgement.
func (e *engine) ccAck(w *worker, h *host, f *frame, s *sender, acked uint32) {
	c := &e.cfg.CC
	switch c.Kind {
	case DCQCN:
		if f.flags&flagCE != 0 && !s.ended {
			s.dcqcn.Notify(c, &s.Rate, f.at, e.notice(w, f.at))
		}
	case HPCC:
		if rate, ok := e.hp[f.flow].Ack(c, &s.Rate, f.aux, f.psn, s.nxt); ok {
			e.shift(w, h, s, rate, f.at)
		}
	case Timely:
		if f.flags&flagSack == 0 { // a report has no time
			e.ti[f.flow].Ack(c, &s.Rate, f.psn, s.nxt, int64(uint32(f.at/1000)-f.aux))
		}
	case DCTCP:
		e.dc[f.flow].Ack(c, &s.Rate, f.psn, s.nxt, f.flags&flagCE != 0)
	case Pint:
		if e.seen[f.flow]++; streams.Hash(e.cfg.Seed, f.flow, drawSample, e.seen[f.flow]) >= c.PintShare {
			return
		}
		if rate, ok := e.pi[f.flow].Ack(c, &s.Rate, f.aux, f.psn, s.nxt); ok {
			e.shift(w, h, s, rate, f.at)
		}
	case Swift:
		if f.flags&flagNack != 0 {
			e.lossSeen(f.flow, s, f.at, 0)
		} else if f.flags&flagSack == 0 {
			e.sw[f.flow].Ack(&c.Swift, f.at, 1000*int64(uint32(f.at/1000)-f.aux), acked)
			e.delays(f.flow, s)
		}
	}
}

// lossSeen lets Swift see a loss; others do not mind.
func (e *engine) lossSeen(id int32, s *sender, now int64, timeouts int32) {
	if e.cfg.CC.Kind == Swift {
		e.sw[id].Loss(&e.cfg.CC.Swift, now, timeouts)
		e.delays(id, s)
	}
}

// delays sets the window that Swift found.
func (e *engine) delays(id int32, s *sender) {
	f := &e.cfg.Frames
	s.window = e.sw[id].Window(&e.cfg.CC, &s.Rate, f.Payload, f.Payload+f.Header)
}
