package netpreset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// Sizes on the wire beyond the payload, in bytes. RoCEv2 over Ethernet: preamble 8,
// Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12; an acknowledgement has
// an AETH of 4; a PFC frame is 64 with preamble and gap (IEEE 802.1Qbb). InfiniBand:
// LRH 8, BTH 12, ICRC 4, VCRC 2 (IBTA 1.7).
const (
	roceHeader, roceAck, pfcFrame = 82, 86, 84
	// A CNP: BTH and 16 bytes of its own in place of a payload.
	cnp             = 98
	ibHeader, ibAck = 26, 30
	// NCCL writes a message with immediate data: RETH in its first frame, ImmDt in its last.
	reth, immediate = 16, 4
)

// Of makes the settings of a network, as what is chosen in place of the file's has it. rc is NCCL's timeout
// and retries. Errors are *fabric.PacketsErrors.
func Of(n *fabric.Network, as Choice, seed uint64, rc sim.Reliability) (*sim.Packets, error) {
	var own fabric.Packets
	if n.Packets != nil {
		own = *n.Packets
	}
	base, err := find(cmp.Or(own.Preset, Default))
	if err != nil {
		return nil, err
	}
	p := over(base.Packets, own)
	if err := consistent(&p, &own, as, n); err != nil {
		return nil, err
	}
	p = chosen(p, as)
	set := &sim.Packets{Hop: units.FromMicros(*p.Hop)}
	c := &set.Config
	c.Seed, c.Watchdog = seed, watchdog(p.Watchdog)
	c.Frames = packet.Frames{Payload: int(*p.MTU), Header: roceHeader, Ack: roceAck, Pause: pfcFrame,
		First: reth, Last: immediate}
	c.Buffer = packet.Buffer{Bytes: kb(p.Buffer), Reserve: kb(p.Reserve), ResumeOffset: kb(p.Resume),
		HeadroomDelays: int(*p.Delays), XOff: kb(p.XOff), XOn: kb(p.XOn)}
	c.Buffer.Shift = int(math.Round(-math.Log2(*p.Alpha)))
	// What still comes after a pause was asked for: a frame that holds it up, one that the
	// neighbour has begun, and what is on the cable both ways (IEEE 802.1Qbb, annex O).
	c.Buffer.Headroom = 2*int64(c.Frames.Most()) + int64(c.Frames.Pause)
	if p.Link == "infiniband" {
		c.Frames.Header, c.Frames.Ack, c.Buffer.Credits = ibHeader, ibAck, kb(p.Credits)
	}
	if most := int64(c.Frames.Most()); p.Link == "infiniband" && c.Buffer.Credits < most {
		return nil, &fabric.PacketsError{Key: "credits_kb",
			Problem: fmt.Sprintf("credits_kb %g: a frame of %d bytes must fit behind a link; write more, "+
				"or a smaller mtu", *p.Credits, most)}
	} else if p.Repair == "trim" && kb(p.Trim) > 0 && kb(p.Trim) < most {
		return nil, &fabric.PacketsError{Key: "trim_kb", Problem: fmt.Sprintf("trim_kb %g: a frame of %d "+
			"bytes must fit into a queue; write more, or 0 for what a round trip holds", *p.Trim, most)}
	}
	if p.Quanta != nil && *p.Quanta > 0 && p.Repair != "trim" && p.Link != "infiniband" {
		if c.Buffer.Quanta = int(*p.Quanta); c.Buffer.Quanta < c.LeastQuanta() {
			return nil, wrong("pause_quanta", "pause_quanta %g: a pause ends before it can be repeated "+
				"behind a frame of %d bytes; write %d or more, or 0 for pauses without an end", *p.Quanta,
				c.Frames.Most(), c.LeastQuanta())
		}
	}
	if p.Through != nil && *p.Through > 0 {
		if c.CutThrough = int(*p.Through); c.CutThrough < packet.LeastHead {
			return nil, wrong("cut_through", "cut_through %g: a switch knows where a frame goes once it "+
				"has its headers; write %d or more, or 0 to store all of it", *p.Through, packet.LeastHead)
		}
	}
	c.AckFrom, c.NackGap = int64(*p.AckEach), 500*units.Microsecond
	c.Repair = packet.Repair{Selective: p.Repair == "sr", Timeout: rc.Wait(),
		Retries: int32(rc.Retries.Or(7))}
	if c.Repair.Selective {
		c.AckFrom = 1
	}
	if err := routes(c, &p); err != nil {
		return nil, err
	}
	if p.Repair == "trim" {
		if p.Link == "infiniband" {
			return nil, &fabric.PacketsError{Key: "repair", Problem: "repair trim: links of InfiniBand " +
				"have room for what they carry, and cut nothing; write link ethernet"}
		}
		c.Cut(kb(p.Trim), portRate(n), set.Hop)
	}
	if c.MarkAtEnqueue = p.MarkAt == "enqueue"; p.Messages != nil && *p.Messages > 0 {
		c.MessageGap = units.FromMicros(1 / *p.Messages)
	}
	return set, control(set, n, &p, own.Marks != nil)
}

// control sets senders' congestion control and the marks that go with it; own says that the
// file has marks of its own.
func control(set *sim.Packets, n *fabric.Network, p *fabric.Packets, own bool) error {
	c := &set.Config
	control, err := packet.Preset(p.CC, portRate(n))
	if err != nil {
		return &fabric.PacketsError{Key: "cc", Problem: err.Error()}
	}
	if p.Window != nil {
		control.Window = kb(p.Window)
	}
	if p.CNP == "frame" && control.Kind == packet.DCQCN {
		control.CNPBytes, control.CNPGap = cnp, cmp.Or(control.CNPGap, 4*units.Microsecond)
	}
	if p.DCQCN != nil {
		if control.Kind != packet.DCQCN {
			return &fabric.PacketsError{Key: "dcqcn",
				Problem: fmt.Sprintf("settings of DCQCN beside cc %s: write one of dcqcn, or leave them out",
					p.CC)}
		}
		knobs(&control, p.DCQCN)
	}
	if control.Kind != packet.NoCC {
		for _, m := range p.Marks {
			c.Marking = append(c.Marking, packet.Marking{Rate: int64(m.Gbit * 1e9), KMin: int64(m.KMin * 1e3),
				KMax: int64(m.KMax * 1e3), PMax: m.PMax})
		}
	}
	c.Control(control, rates(n), set.Hop, own)
	switch w := c.CC.Window; {
	case (control.Kind == packet.DCQCN || control.Kind == packet.DCTCP) && len(c.Marking) == 0:
		return wrong("ecn",
			"%s acts on marks, and switches make none: list thresholds under ecn, or write cc none", p.CC)
	case w > 0 && (c.AckFrom-1)*int64(c.Frames.Payload) >= w:
		return wrong("window_kb", "window_kb %g: is full before the %d frames of %d bytes are sent after "+
			"which the receiver acknowledges (ack_every); write more than %g, or a smaller ack_every",
			*p.Window, c.AckFrom, c.Frames.Payload, float64((c.AckFrom-1)*int64(c.Frames.Payload))/1e3)
	}
	return nil
}

// knobs puts settings of DCQCN in place of those that a name has.
func knobs(c *packet.CC, d *fabric.DCQCN) {
	const mbit = 1e6
	set := func(x *float64, do func(v float64)) {
		if x != nil {
			do(*x)
		}
	}
	period := func(at *units.Time) func(float64) { return func(v float64) { *at = units.FromMicros(v) } }
	rate := func(at *int64) func(float64) { return func(v float64) { *at = int64(v * mbit) } }
	set(d.TimeReset, period(&c.IncreasePeriod))
	set(d.ByteReset, func(v float64) { c.ByteReset = 64 * int64(v) })
	set(d.Threshold, func(v float64) { c.FastRecovery = int32(v) })
	set(d.AI, rate(&c.AI))
	set(d.HAI, rate(&c.HAI))
	set(d.MinRate, rate(&c.MinRate))
	set(d.MinDecFac, func(v float64) { c.MostCut = (100 - v) / 100 })
	set(d.Monitor, period(&c.DecreasePeriod))
	set(d.Gain, func(v float64) { c.Gain = 1 - v/1024 })
	set(d.AlphaRTT, period(&c.AlphaPeriod))
	set(d.Alpha, func(v float64) { c.Alpha = v / 1024 })
	set(d.Clamp, func(v float64) { c.ClampTarget = v == 1 })
	set(d.CNPs, period(&c.CNPGap))
}

// routes sets how frames choose theirs.
func routes(c *packet.Config, p *fabric.Packets) error {
	switch p.Balance {
	case "queue-pair":
	case "flowlet":
		c.Routing = packet.Routing{Balance: packet.PerFlow, Gap: 16 * units.Microsecond,
			Quantum: kb(p.Quantum)}
		if p.Gap != nil {
			c.Routing.Gap = units.FromMicros(*p.Gap)
		}
	case "packet":
		if p.Repair == "gbn" {
			return &fabric.PacketsError{Key: "balance",
				Problem: "balance packet: frames overtake each other; write repair sr or trim"}
		}
		c.Routing = packet.Routing{Balance: packet.PerPacket, Quantum: kb(p.Quantum)}
		c.Repair.Reorder = packet.Overtaken
	default:
		return &fabric.PacketsError{Key: "balance", Problem: fmt.Sprintf("%s is not one: write one of %s",
			p.Balance, strings.Join(Balances(), ", "))}
	}
	return nil
}

// watchdog drops after a pause of us microseconds, and for as long after its end; nil:
// never.
func watchdog(us *float64) packet.Watchdog {
	if us == nil {
		return packet.Watchdog{}
	}
	after := units.FromMicros(*us)
	return packet.Watchdog{After: after, Restore: after}
}

// rates lists the speeds of a network's cables in bit/s.
func rates(n *fabric.Network) (out []int64) {
	for i := range n.Cables {
		if r := int64(n.Cables[i].Gbit * 1e9); !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// kb is a size in kB as bytes; 0 where it is absent.
func kb(x *float64) int64 {
	if x == nil {
		return 0
	}
	return int64(*x * 1e3)
}

// portRate is the speed of the first port of a host, in bit/s.
func portRate(n *fabric.Network) int64 {
	for i := range n.Cables {
		for _, end := range []string{n.Cables[i].A, n.Cables[i].B} {
			if _, host := fabric.ParseEnd(end); host {
				return int64(n.Cables[i].Gbit * 1e9)
			}
		}
	}
	return 400e9
}

// chosen is p with what was asked for in place of a file's, whose settings of a congestion
// control go with it; NICs that are to put frames in order
// send single ones again.
func chosen(p fabric.Packets, as Choice) fabric.Packets {
	if as.CC != "" {
		p.CC, p.DCQCN = as.CC, nil
	}
	if p.Balance = cmp.Or(as.Balance, p.Balance); as.Balance == "packet" && p.Repair == "gbn" {
		p.Repair = "sr"
	}
	return p
}

// over is a preset with what a file says in place of its own.
func over(base, own fabric.Packets) fabric.Packets {
	for _, x := range [][2]*string{{&base.Link, &own.Link}, {&base.CC, &own.CC},
		{&base.Balance, &own.Balance}, {&base.Repair, &own.Repair}, {&base.MarkAt, &own.MarkAt},
		{&base.CNP, &own.CNP}} {
		if *x[1] != "" {
			*x[0] = *x[1]
		}
	}
	for _, x := range [][2]**float64{{&base.Hop, &own.Hop}, {&base.MTU, &own.MTU},
		{&base.AckEach, &own.AckEach}, {&base.Buffer, &own.Buffer}, {&base.Reserve, &own.Reserve},
		{&base.Resume, &own.Resume}, {&base.Alpha, &own.Alpha}, {&base.Delays, &own.Delays},
		{&base.XOff, &own.XOff}, {&base.XOn, &own.XOn}, {&base.Quanta, &own.Quanta},
		{&base.Through, &own.Through},
		{&base.Credits, &own.Credits}, {&base.Trim, &own.Trim}, {&base.Messages, &own.Messages},
		{&base.Window, &own.Window}, {&base.Gap, &own.Gap}, {&base.Quantum, &own.Quantum},
		{&base.Watchdog, &own.Watchdog}} {
		if *x[1] != nil {
			*x[0] = *x[1]
		}
	}
	if own.Marks != nil {
		base.Marks = own.Marks
	}
	base.DCQCN = own.DCQCN
	if base.Link == "infiniband" && base.Credits == nil {
		base.Credits = v(128)
	}
	return base
}
