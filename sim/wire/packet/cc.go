package packet

import (
	"github.com/simccl/simccl/sim/wire/packet/cc"
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
		e.hp = make([]*hpcc, len(e.flows))
	case Timely:
		e.ti = make([]timely, len(e.flows))
	case DCTCP:
		e.dc = make([]dctcp, len(e.flows))
	case Swift:
		e.sw = make([]swift, len(e.flows))
	case Pint:
		e.pi = make([]pint, len(e.flows))
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
		e.hp[id] = e.newHPCC(s, int64(rtt/units.Nanosecond))
	case Timely:
		e.ti[id] = timely{rate: s.Line}
	case DCTCP:
		e.dc[id] = dctcp{alpha: 1}
	case Pint:
		e.pi[id] = pint{rate: s.Line}
	case Swift:
		e.sw[id] = e.newSwift(s, links-1)
	}
}

// ccStamp writes into a data frame what the control reads from its
// acknowledgement.
func (e *engine) ccStamp(f *frame, now int64) {
	switch e.cfg.CC.Kind {
	case HPCC:
		p := e.hp[f.flow]
		f.aux = f.psn
		p.ring[int(f.psn)&(len(p.ring)-1)].n = 0
	case Timely, Swift:
		f.aux = uint32(now / 1000)
	}
}

// ccAck lets the control see an acknowledgement.
func (e *engine) ccAck(h *host, f *frame, s *sender, acked uint32) {
	switch e.cfg.CC.Kind {
	case DCQCN:
		if f.flags&flagCE != 0 && !s.ended {
			s.dcqcn.Notify(&e.cfg.CC, &s.Rate, f.at)
		}
	case HPCC:
		e.hpccAck(h, f, s)
	case Timely:
		if f.flags&flagSack == 0 { // a report has no time
			e.timelyAck(f, s)
		}
	case DCTCP:
		e.dctcpAck(f, s)
	case Pint:
		e.pintAck(h, f, s)
	case Swift:
		if f.flags&flagNack != 0 {
			e.swiftLoss(f.flow, s, f.at, false)
		} else if f.flags&flagSack == 0 {
			e.swiftAck(f, s, acked)
		}
	}
}
