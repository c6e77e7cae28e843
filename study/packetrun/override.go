package packetrun

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/simfiles"
	"github.com/simccl/simccl/units"
)

// Override is the options that replace settings of a configuration.
type Override struct {
	CC string `json:"cc,omitempty"` // one of packet.Presets; empty: the configuration's
	// ECN is KMIN/KMAX/PMAX: the queues, in kB, at which marking begins and all is marked, and the largest
	// share between; empty: the configuration's.
	ECN       string  `json:"ecn,omitempty"`
	Repair    string  `json:"repair,omitempty"`  // gbn, sr or trim; empty: the configuration's
	TimeoutUs float64 `json:"timeout,omitempty"` // 0: none
	Retries   int     `json:"retries,omitempty"` // 0: for ever
	Paths     int     `json:"paths,omitempty"`   // of a flow; 0: one
	Credits   int64   `json:"credits,omitempty"` // bytes behind each link; 0: Ethernet
	// Routing of switches: ecmp, adaptive or flowlet; empty: ecmp.
	Routing   string  `json:"routing,omitempty"`
	FlowletUs float64 `json:"flowlet"` // silence after which a flow chooses again
	// Alpha is the share of the free memory that a queue may take; 0: the configuration's.
	Alpha float64 `json:"alpha,omitempty"`
	// of 512 bit times that a pause lasts; 0: until it is ended
	Quanta int `json:"pause-quanta,omitempty"`
	// Through is the first bytes of a frame with which a switch begins to send it on; 0: it stores all.
	Through int    `json:"cut-through,omitempty"`
	CNP     string `json:"cnp,omitempty"`     // of DCQCN: ack or frame; empty: ack
	MarkAt  string `json:"mark-at,omitempty"` // dequeue or enqueue; empty: dequeue
	// that a host begins in a second, in millions; 0: no bound
	Messages float64 `json:"message-rate,omitempty"`
	// of a pause without an end, after which a watchdog drops; 0: none
	WatchUs float64  `json:"watchdog,omitempty"`
	Faults  []string `json:"fault,omitempty"` // as parseFault reads them
}

// marks are ECN thresholds of the option at a network's rates: those of the hosts' links as they are written,
// of others in proportion to their speed.
func (v *Override) marks(n *packet.Network) ([]packet.Marking, error) {
	parts := strings.Split(v.ECN, "/")
	var at [3]float64
	for i := range at {
		var err error
		if len(parts) == len(at) {
			at[i], err = strconv.ParseFloat(parts[i], 64)
		}
		if len(parts) != len(at) || err != nil || !(at[i] >= 0 && at[i] <= 1e6) {
			return nil, fail.Usage("{ECN} %q: write KMIN/KMAX/PMAX, as 100/400/0.2: kB of a queue where "+
				"marking begins and where all is marked, at the speed of hosts, and the share marked just "+
				"below",
				v.ECN)
		}
	}
	if at[0] > at[1] || at[2] > 1 {
		return nil, fail.Usage("{ECN} %q: KMIN is at most KMAX, and PMAX at most 1", v.ECN)
	}
	c := packet.Config{Marking: []packet.Marking{{Rate: hostRate(n), KMin: int64(at[0] * 1000),
		KMax: int64(at[1] * 1000), PMax: at[2]}}}
	return c.MarksOf(n), nil
}

// mark replaces the ECN thresholds where others are asked for.
func (v *Override) mark(n *packet.Network, c *packet.Config) (err error) {
	switch {
	case v.ECN == "":
		return nil
	case len(c.Marking) == 0 && c.CC.Kind != packet.DCQCN:
		return fail.Usage("{ECN} %s: nothing is marked with %s: leave it out, or write {CC} dcqcn:paper or "+
			"dctcp",
			v.ECN, c.CC.Kind)
	}
	c.Marking, err = v.marks(n)
	return err
}

// ethernetFrames sets the frame sizes of RoCEv2 on Ethernet.
func ethernetFrames(x *simfiles.NS3Scenario) {
	x.Config.Frames.Header, x.Config.Frames.Ack = roceHeader+x.Carried, roceAck+x.Carried
}

// apply changes a scenario, with frames of RoCE or the peer's.
func (v *Override) apply(x *simfiles.NS3Scenario, ethernet bool) error {
	c := &x.Config
	if err := v.control(x, ethernet); err != nil {
		return err
	}
	if err := v.mark(&x.Network, c); err != nil {
		return err
	}
	if v.Repair != "" {
		c.Repair.BackTo = 0
	}
	switch v.Repair {
	case "", "gbn":
	case "sr":
		c.Repair.Selective = true
	case "trim":
		_, delay := x.Network.Speeds()
		c.Cut(0, hostRate(&x.Network), delay)
	default:
		return fail.Usage("{Repair} %q: write gbn, sr or trim", v.Repair)
	}
	if err := v.bounds(); err != nil {
		return err
	}
	switch v.MarkAt {
	case "", "dequeue":
	case "enqueue": // no order of events of the peer, which marks at dequeue
		c.MarkAtEnqueue, c.EventOrder, c.Stream, c.LossStream = true, false, 0, 0
	default:
		return fail.Usage("{MarkAt} %q: write dequeue or enqueue", v.MarkAt)
	}
	if err := v.hardware(c); err != nil {
		return err
	}
	if v.Messages > 0 {
		c.MessageGap = units.FromMicros(1 / v.Messages)
	}
	c.Repair.Timeout, c.Repair.Retries = units.FromMicros(v.TimeoutUs), int32(min(v.Retries, 1<<30))
	c.Buffer.Credits, c.Paths = v.Credits, v.Paths
	if err := v.route(c); err != nil {
		return err
	}
	if v.Paths > 1 || c.Routing.Balance == packet.PerPacket {
		c.Repair.Reorder = packet.Overtaken
	}
	if err := v.faults(&x.Network, x.Flows, numbered, c); err != nil {
		return err
	}
	return v.ends(x)
}

// faults adds the faults of the options; their times count from the first start of a flow.
func (v *Override) faults(n *packet.Network, flows []packet.Flow, node func(string) int,
	c *packet.Config) error {
	first := units.Time(1<<63 - 1)
	for i := range flows {
		first = min(first, flows[i].Start)
	}
	for _, text := range v.Faults {
		all, err := parseFault(n, node, text)
		if err != nil {
			return err
		}
		for _, f := range all {
			f.From += first
			if f.To > 0 {
				f.To += first
			}
			c.Faults = append(c.Faults, f)
		}
	}
	return nil
}

// ends returns an error if a timeout would resend the same frames for ever: over a link that is down
// permanently and that no switch avoids, or in a flow that go-back-0 never ends.
func (v *Override) ends(x *simfiles.NS3Scenario) error {
	if v.TimeoutUs == 0 || v.Retries > 0 {
		return nil
	}
	dead := func(i int) error {
		return fail.Usage("{TimeoutUs} %g: nothing comes over the link of nodes %d and %d any more, so its "+
			"frames are sent again without an end: add {Retries}", v.TimeoutUs, x.Network.Cables[i].A,
			x.Network.Cables[i].B)
	}
	if i := endless(x.Flows, &x.Config); i >= 0 {
		return fail.Usage("{TimeoutUs} %g: with L2_BACK_TO_ZERO flow %d of %d bytes, no multiple of "+
			"L2_CHUNK_SIZE, never ends, and its frames are sent again without an end: add {Retries}, or "+
			"{Repair} gbn", v.TimeoutUs, i, x.Flows[i].Bytes)
	}
	for i, c := range x.Network.Cables {
		if c.Loss >= 1 {
			return dead(i)
		}
	}
	for _, f := range x.Config.Faults {
		if f.To == 0 && (f.Loss >= 1 || f.Down && !f.Reroute && v.Routing != "adaptive" &&
			v.Routing != "flowlet") {
			return dead(f.Cable)
		}
	}
	return nil
}

// control replaces the congestion control, with the sizes of frames that it needs.
func (v *Override) control(x *simfiles.NS3Scenario, ethernet bool) error {
	if v.CC == "" {
		return nil
	}
	c := &x.Config
	cc, err := packet.Preset(v.CC, hostRate(&x.Network))
	if err != nil {
		return fail.Usage("{CC}: %v", err)
	}
	if c.Marking = x.Marking; cc.Kind != packet.DCQCN {
		c.Marking = nil
	}
	if x.Carry(simfiles.CarriedBy(cc.Kind)); ethernet {
		ethernetFrames(x)
	}
	rates, delay := x.Network.Speeds()
	c.CC.Kind = cc.Kind // the sizes of frames are set
	cc.RateCodes = cc.Kind == packet.HPCC && !ethernet
	if c.Control(cc, rates, delay, false); cc.Kind == packet.DCQCN && len(c.Marking) == 0 &&
		v.ECN == "" {
		return fail.Usage("{CC} %s needs ECN: name the rates of links in KMIN_MAP, KMAX_MAP and PMAX_MAP",
			v.CC)
	}
	return nil
}

// hardware sets the properties of switches and NICs that differ from the HPCC simulator's.
func (v *Override) hardware(c *packet.Config) error {
	if v.Through != 0 && (v.Through < packet.LeastHead || v.Through > 1<<16-1) {
		return fail.Usage("{Through} %d: write %d to %d bytes, or 0 (store and forward)", v.Through,
			packet.LeastHead, 1<<16-1)
	}
	// no order of events of the peer, whose switches store and forward
	if c.CutThrough = v.Through; v.Through > 0 {
		c.EventOrder, c.Stream, c.LossStream = false, 0, 0
	}
	switch v.CNP {
	case "", "ack":
	case "frame":
		if c.WholeNanos || c.CC.Kind != packet.DCQCN {
			return fail.Usage("{CNP} frame: is of DCQCN, with frames of RoCE: add {Compat} none and {CC} " +
				"dcqcn:..., or leave it out")
		}
		c.CC.CNPBytes, c.CC.CNPGap = roceCNP, cmp.Or(c.CC.CNPGap, 4*units.Microsecond)
	default:
		return fail.Usage("{CNP} %q: write ack or frame", v.CNP)
	}
	return v.pauses(c)
}

// pauses sets when a switch pauses its neighbours, and for how long.
func (v *Override) pauses(c *packet.Config) error {
	if frac, exp := math.Frexp(v.Alpha); v.Alpha != 0 {
		switch {
		case v.Credits > 0 || v.Repair == "trim":
			return fail.Usage("{Alpha} with {Credits} or {Repair} trim: nothing pauses there: leave one out")
		case frac != 0.5 || exp < -9 || exp > 4:
			return fail.Usage("{Alpha} %g: switches shift by it: write a power of two from 0.0009765625 to 8",
				v.Alpha)
		}
		c.Buffer.Shift = 1 - exp
	}
	switch least := c.LeastQuanta(); {
	case v.Quanta == 0:
		return nil
	case v.Credits > 0 || v.Repair == "trim":
		return fail.Usage("{Quanta} with {Credits} or {Repair} trim: nothing pauses there: leave one out")
	case v.Quanta < least || v.Quanta > 65535:
		return fail.Usage("{Quanta} %d: write %d to 65535, so that a pause is repeated before it ends, or "+
			"0 (no end)", v.Quanta, least)
	}
	// no order of events of the peer, whose pauses have no end
	c.Buffer.Quanta, c.EventOrder, c.Stream, c.LossStream = v.Quanta, false, 0, 0
	return nil
}

// bounds returns an error for a value that is out of its bounds, or that has no effect with the other
// options.
func (v *Override) bounds() error {
	span := func(us float64) bool { return us == 0 || us >= 0.001 && us <= 1e9 }
	switch {
	case !span(v.TimeoutUs):
		return fail.Usage("{TimeoutUs} %g: write 0 (never), or 0.001 to 1e9 us", v.TimeoutUs)
	case !span(v.FlowletUs):
		return fail.Usage("{FlowletUs} %g: write 0 (at each frame), or 0.001 to 1e9 us", v.FlowletUs)
	case !span(v.WatchUs):
		return fail.Usage("{WatchUs} %g: write 0 (never), or 0.001 to 1e9 us", v.WatchUs)
	case v.Messages != 0 && !(v.Messages >= 1e-6 && v.Messages <= 1e6):
		return fail.Usage("{Messages} %g: write millions of messages a second, 1e-6 to 1e6, or 0 (no bound)",
			v.Messages)
	case v.Retries < 0 || v.Credits < 0 || v.Paths < 0:
		return fail.Usage("{Retries} %d, {Paths} %d, {Credits} %d: none may be negative", v.Retries, v.Paths,
			v.Credits)
	case v.Retries > 0 && v.TimeoutUs == 0:
		return fail.Usage("{Retries} %d: counts timeouts, and there are none: add {TimeoutUs}", v.Retries)
	case v.Credits > 0 && v.Repair == "trim":
		return fail.Usage("{Repair} trim with {Credits}: links with credits have room for what they carry, " +
			"and cut nothing: leave one out")
	case v.Credits > 0 && v.WatchUs > 0:
		return fail.Usage("{WatchUs} with {Credits}: links with credits pause nothing: leave one out")
	}
	return nil
}

// route sets the load balancing of switches and their PFC watchdog, and checks the options that these
// require.
func (v *Override) route(c *packet.Config) error {
	switch v.Routing {
	case "", "ecmp":
	case "adaptive":
		if c.Routing.Balance = packet.PerPacket; v.Repair != "sr" && v.Repair != "trim" {
			return fail.Usage("{Routing} adaptive reorders frames: add {Repair} sr or trim")
		}
	case "flowlet":
		c.Routing = packet.Routing{Balance: packet.PerFlow, Gap: units.FromMicros(v.FlowletUs)}
	default:
		return fail.Usage("{Routing} %q: write ecmp, adaptive or flowlet", v.Routing)
	}
	if v.Paths > 1024 || v.Paths > 1 && !c.Repair.Selective {
		return fail.Usage("{Paths} %d: frames of several paths overtake each other: write at most 1024, "+
			"and add {Repair} sr", v.Paths)
	}
	if most := int64(c.Frames.Most()); v.Credits > 0 && v.Credits < most {
		return fail.Usage("{Credits} %d: a frame of %d bytes must fit behind a link", v.Credits, most)
	}
	after := units.FromMicros(v.WatchUs)
	c.Watchdog = packet.Watchdog{After: after, Restore: after}
	return nil
}

// hostRate returns the rate of the first host's link.
func hostRate(n *packet.Network) int64 {
	for _, c := range n.Cables {
		if !n.Switch[c.A] || !n.Switch[c.B] {
			return c.Rate
		}
	}
	return 0
}

// leastRate is the lowest rate of a slowed link, in bit/s.
const leastRate = 1e6

// flaps is the largest number of flaps of a link within a fault.
const flaps = 10000

// parseFault parses "link=A~B:WHAT" or "link=A~B:WHAT@FROM-TO": two nodes with a cable between them; down,
// slow=FACTOR, latency=US, loss=SHARE, storm (B sends pauses to A) or flap=DOWN/PERIOD; and times in µs after
// the first start. "nic=A:WHAT" means the cables of a host, whose NIC sends the pauses. "A-B:WHAT" is equal
// to link=, except that slow=SHARE is the remaining share of the speed. node maps a name to a node's number,
// -1 if there is none. Latency is added to n.
func parseFault(n *packet.Network, node func(name string) int, text string) ([]packet.Fault, error) {
	wrong := fail.Usage("{Faults} %q: write link=A~B:down, slow=2 (half the speed), latency=5, loss=0.01, "+
		"storm or flap=20/100, and when, as link=0~7:down@100-300 (µs after the first start); nic=A:… of "+
		"the "+
		"cables of host A; or A-B:slow=0.5, whose slow is the share of the speed that is left", text)
	named, common := strings.CutPrefix(text, "link=") // the language of run --fault
	host, nic := strings.CutPrefix(named, "nic=")
	nodes, what, ok := strings.Cut(host, ":")
	a, b, ok2 := strings.Cut(nodes, map[bool]string{true: "~", false: "-"}[common])
	if nic {
		a, b, common, ok2 = nodes, nodes, true, !common
	}
	va, vb := node(a), node(b)
	if !ok || !ok2 || va < 0 || vb < 0 {
		return nil, wrong
	}
	what, when, timed := strings.Cut(what, "@")
	f, ok := packet.Fault{}, true
	if timed {
		f.From, f.To, ok = parseSpan(when)
	}
	name, value, valued := strings.Cut(what, "=")
	down, period, late := units.Time(0), units.Time(0), units.Time(0)
	switch share, err := strconv.ParseFloat(value, 64); {
	case name == "down" && !valued:
		f.Down = true
	case name == "storm" && !valued:
		f.Storm = true
	case common && name == "slow":
		if f.Slow = 1 / share; err != nil || !(share >= 1 && share <= 1e9) {
			ok = false
		}
	case name == "slow" && err == nil && share > 0 && share <= 1:
		f.Slow = share
	case name == "loss" && err == nil && share >= 0 && share <= 1:
		f.Loss = share
	case name == "latency" && timed:
		return nil, fail.Usage("{Faults} %q: latency is of the whole run: leave out @%s", text, when)
	case name == "latency" && err == nil && share > 0 && share <= 1e6:
		late = units.FromMicros(share)
	case name == "flap" && f.To > 0:
		var fine bool
		down, period, fine = parsePair(value, "/")
		f.Down, ok = true, ok && fine && down < period && int64((f.To-f.From)/period) < flaps
	case name == "flap" && !timed:
		return nil, fail.Usage("{Faults} %q: a link flaps for a time: write when, as %s@0-1000 (µs after "+
			"the first start)", text, text)
	default:
		ok = false
	}
	if !ok {
		return nil, wrong
	}
	return along(n, [2]int{va, vb}, text, a+" and "+b, flap(f, down, period), late)
}

// along applies faults to all cables between two nodes, or to all cables of a host if both ends are the same
// node.
func along(n *packet.Network, ends [2]int, text, named string, all []packet.Fault, late units.Time) (
	out []packet.Fault, err error) {
	nic, found := ends[0] == ends[1], false
	if nic && n.Switch[ends[0]] {
		return nil, fail.Usage("{Faults} %q: a switch has no NIC: write link=A~B", text)
	}
	for i := range n.Cables {
		c := &n.Cables[i]
		at := [2]int{int(c.A), int(c.B)}
		if nic && at[0] != ends[0] && at[1] != ends[0] || !nic && at != ends &&
			at != [2]int{ends[1], ends[0]} {
			continue
		}
		found = true
		if c.Delay += late; late > 0 {
			continue
		}
		for _, f := range all {
			if f.Slow > 0 && f.Slow*float64(c.Rate) < leastRate {
				return nil, fail.Usage("{Faults} %q: leaves less than 1 Mb/s of %d bit/s: write a larger "+
					"share, or down", text, c.Rate)
			}
			// The second end pauses the first; the NIC whatever it is joined to.
			f.Cable, f.Back = i, f.Storm && (at[0] == ends[0]) == nic
			out = append(out, f)
		}
	}
	if !found {
		return nil, fail.Usage("{Faults} %q: no link joins nodes %s", text, named)
	}
	return out, nil
}

// numbered parses the number of a node in a scenario without names.
func numbered(name string) int {
	if v, err := strconv.Atoi(name); err == nil {
		return v
	}
	return -1
}

// parsePair parses two positive times in µs.
func parsePair(text, sep string) (a, b units.Time, ok bool) {
	left, right, ok := strings.Cut(text, sep)
	x, err1 := strconv.ParseFloat(left, 64)
	y, err2 := strconv.ParseFloat(right, 64)
	if !ok || err1 != nil || err2 != nil || !(x > 0 && x <= 1e9) || !(y > 0 && y <= 1e9) {
		return 0, 0, false
	}
	return units.FromMicros(x), units.FromMicros(y), true
}

// parseSpan reads FROM or FROM-TO in µs; a To of 0 is the end.
func parseSpan(text string) (from, to units.Time, ok bool) {
	first, last, ended := strings.Cut(text, "-")
	x, err := strconv.ParseFloat(first, 64)
	y := 0.0
	if err == nil && ended {
		y, err = strconv.ParseFloat(last, 64)
	}
	if err != nil || !(x >= 0 && x <= 1e9) || ended && !(y > x && y <= 1e9) {
		return 0, 0, false
	}
	return units.FromMicros(x), units.FromMicros(y), true
}

// flap divides a fault of a flapping link into its down times: the first part of each period.
func flap(f packet.Fault, down, period units.Time) (all []packet.Fault) {
	if period == 0 {
		return []packet.Fault{f}
	}
	for at := f.From; at < f.To; at += period {
		g := f
		g.From, g.To = at, min(at+down, f.To)
		all = append(all, g)
	}
	return all
}
