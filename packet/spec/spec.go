// Package spec describes a packet network, its flows and how its nodes behave, and
// checks such a description.
//
// In: settings. Out: errors. It must not know how frames are simulated.
package spec

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/units"
)

// Cable joins two nodes and carries frames in both directions.
type Cable struct {
	A, B  int32
	Rate  int64 // bit/s of each direction
	Delay units.Time
	// Loss is the probability that a frame is lost on arrival, of each direction.
	Loss       float64
	SharedLoss bool // see Config.LossStream
}

// Network is nodes 0 to Nodes-1, of which Switch says which are switches, and
// the cables between them. A host has one cable.
type Network struct {
	Nodes  int
	Switch []bool
	Cables []Cable
}

// Flow is a message from one host to another over a queue pair of its own.
type Flow struct {
	Src, Dst int32
	Bytes    int64
	Priority uint8 // 1 to 7
	DstPort  uint16
	Start    units.Time // the earliest
	// Window (bytes) and BaseRTT replace those of CC where they are set.
	Window  int64
	BaseRTT units.Time
	// Deps are flows (indices) that must have ended: it starts a nanosecond after
	// the last acknowledgement of the last of them.
	Deps []int32
	// Path and Back are the cables that its data and its acknowledgements cross, in place
	// of those that ECMP chooses; empty: ECMP.
	Path, Back []int32
}

// Frames are sizes on the wire, in bytes.
type Frames struct {
	Payload int // most payload of a data frame
	Header  int // of a data frame, beside its payload
	Ack     int // an acknowledgement, a whole frame
	Pause   int // a PFC frame
	// First and Last are what the first and the last data frame of a message of a Live run
	// carry beside it: where it is to be written, and immediate data.
	First, Last int
}

// Most is the largest data frame.
func (f *Frames) Most() int { return f.Payload + f.Header + f.First + f.Last }

// Speeds lists the rates of cables in bit/s, and the most that one delays.
func (n *Network) Speeds() (rates []int64, most units.Time) {
	for i := range n.Cables {
		c := &n.Cables[i]
		if most = max(most, c.Delay); !slices.Contains(rates, c.Rate) {
			rates = append(rates, c.Rate)
		}
	}
	return rates, most
}

// Marking is ECN at the egress queues of switches, by the rate of the link.
type Marking struct {
	Rate       int64 // bit/s
	KMin, KMax int64 // bytes
	PMax       float64
}

// Control puts a congestion control in place of another, with what goes along with it:
// records of switches in HPCC's frames and acknowledgements, an acknowledgement for each frame where
// windows may be smaller than what one covers, and marks that it needs at the rates of links in
// bit/s, for a round trip over four of them of a delay each. own says that those set
// before stay.
func (c *Config) Control(p cc.Params, rates []int64, hop units.Time, own bool) {
	if p.Kind == cc.HPCC && c.CC.Kind != cc.HPCC {
		c.Frames.Header += cc.Telemetered
		c.Frames.Ack += cc.Telemetered
	}
	if c.CC = p; p.ByRoute || p.Kind == cc.Swift {
		c.AckFrom = 1
	}
	if own {
		return
	}
	var marks []Marking
	for _, rate := range rates {
		least, most, share, ok := p.Kind.Thresholds(rate, c.roundTrip(rate, hop))
		if !ok {
			return
		}
		marks = append(marks, Marking{rate, least, most, share})
	}
	c.Marking = marks
}

// roundTrip is that of a full frame and its acknowledgement over four links of a rate, each with
// a delay.
func (c *Config) roundTrip(rate int64, hop units.Time) units.Time {
	frames := c.Frames.Payload + c.Frames.Header + c.Frames.Ack
	return 4 * (2*hop + units.Time(float64(frames)*8e12/float64(rate)))
}

// Cut has switches cut frames for which an egress queue has no room: more than so many bytes,
// or, with 0, than what a round trip over four links of a rate in bit/s with a delay each holds, in
// whole frames (htsim, main_uec.cpp). Receivers then acknowledge each frame, in the highest
// priority, and take frames out of order.
func (c *Config) Cut(bytes, rate int64, hop units.Time) {
	if frame := float64(c.Frames.Payload + c.Frames.Header); bytes == 0 {
		bytes = int64(math.Ceil(float64(rate)/8*float64(c.roundTrip(rate, hop))/1e12/frame) * frame)
	}
	c.Buffer.Trim, c.AckFrom, c.AckHigh = bytes, 1, true
	c.Repair.Selective, c.Repair.Reorder = true, Overtaken
}

// Overtaken is by how many frames one may be overtaken where frames take several routes, or
// some precede others.
const Overtaken = 1 << 16

// Buffer is the memory of each switch and the rules of PFC.
type Buffer struct {
	Bytes        int64 // in all
	Reserve      int64 // of each ingress port and priority, never shared
	ResumeOffset int64 // so far below the threshold, XON is sent
	// Shift: an ingress queue may fill 1/2^Shift of the free shared memory; one
	// less, but not below 0, for each doubling of a port's rate over that of hosts. A negative one, down to
	// -3, lets a queue grow to 2, 4 or 8 times what is free (SONiC's alpha), as long as anything is.
	Shift int
	// HeadroomDelays is the headroom of an ingress port in bytes that its link
	// carries in this many delays of its cable, and Headroom bytes beside.
	HeadroomDelays int
	Headroom       int64
	// XOff and XOn, where set, are fixed thresholds of an ingress queue in bytes, in
	// place of Shift: it pauses its neighbour from XOff on, and resumes it at XOn.
	XOff, XOn int64
	// Quanta, where set, is for how long a pause lasts, in quanta of 512 bit times of its link (IEEE
	// 802.1Qbb: at most 65,535); a switch asks for it again after half that time as long as its queue has not
	// become short. 0: a pause lasts until it is ended, as in the HPCC simulator.
	Quanta int
	// Credits, where set, make links InfiniBand's: it is the buffer behind each link
	// for each priority, in bytes. Nothing else of Buffer counts then.
	Credits int64
	// Trim, where set, is the most that waits in an egress queue, in bytes: a data frame that
	// finds no room is cut to its headers and goes on before all others, as Ultra Ethernet has
	// it. Nothing else of Buffer counts then.
	Trim int64
}

// Config is how nodes behave.
type Config struct {
	Seed    uint64
	Frames  Frames
	Buffer  Buffer
	Marking []Marking // none: no ECN
	// MarkAtEnqueue marks a frame by the queue that it finds, and not by the one that it
	// leaves behind: its receiver learns of a queue later, by the time that the frame waits.
	MarkAtEnqueue bool
	// MessageGap is the least time between two flows, or messages of a Live run, that a host
	// begins: the messages per second of its NIC.
	MessageGap units.Time
	CC         cc.Params
	// WholeNanos cuts each serialisation and each gap to whole nanoseconds, as
	// ns-3 does.
	WholeNanos bool
	// EventOrder takes what happens at one instant in the order in which a queue of
	// events would have it, which is that in which it was planned.
	EventOrder bool
	// EventOrderAlways keeps that order from the first frame on. Without it a run of more than 1,000
	// frames where no frame is marked or lost, and whose control does not look at each frame, takes the order
	// of ports, which is cheaper: of 80 such runs two makespans then differed from ns-3, by 0.004 and 1.9 %.
	EventOrderAlways bool
	// Stream, where set, draws marks with EventOrder as ns-3 does: each with the first
	// number of a stream of its own, from this one on, of the run that Seed is.
	Stream uint64
	// LossStream, where set, draws losses with EventOrder from this stream: each cable
	// starts it anew, or all with SharedLoss together.
	LossStream uint64
	// CutThrough, where set, is the first bytes of a frame with which a switch begins to send it on, where
	// the link by which it comes is at least as fast as that by which it leaves; else the switch stores all
	// of it first.
	CutThrough int
	AckHigh    bool // acknowledgements travel in the highest priority
	// AckHold is the priority whose pauses hold acknowledgements back at hosts: 0 that
	// of their flow, -1 none.
	AckHold  int8
	AckFrom  int64      // bytes received in order from which each frame is acknowledged
	AckChunk int64      // before that, multiples of it are; 0: none
	NackGap  units.Time // least time between two NAKs of one expected frame
	Repair   Repair
	// Paths is how many source ports, and so hashed paths, a flow's frames take in
	// turn; 0 and 1: one. More than one needs Repair.Selective with Reorder.
	Paths   int
	Faults  []Fault // of one cable they may overlap
	Routing Routing
	// Watchdog is that of switches.
	Watchdog Watchdog
	Stop     units.Time // simulate until then; 0: to the end
	Workers  int        // goroutines; 0 and 1: the caller alone
	// Poll is called periodically; an error ends the run.
	Poll func() error
}

// InputError is a network, flow or setting that cannot be.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

// Wrong makes an InputError.
func Wrong(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// Check finds what is wrong with a network, its flows and the settings.
func Check(n *Network, flows []Flow, c *Config) error {
	if err := checkNetwork(n); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	for i := range c.Faults {
		if err := c.Faults[i].check(n, i); err != nil {
			return err
		}
	}
	for i := range flows {
		f := &flows[i]
		if err := checkFlow(n, i, f, len(flows)); err != nil {
			return err
		}
		if err := f.checkPaths(n, i, c); err != nil {
			return err
		}
		if packets := (f.Bytes + int64(c.Frames.Payload) - 1) / int64(c.Frames.Payload); packets >= 1<<32-1 {
			return Wrong("flow %d: %d bytes are %d frames of %d: write at most %d bytes", i, f.Bytes, packets,
				c.Frames.Payload, (1<<32-2)*int64(c.Frames.Payload))
		}
	}
	return nil
}

func checkNetwork(n *Network) error {
	if n.Nodes < 1 || len(n.Switch) != n.Nodes {
		return Wrong("a network of %d nodes with %d kinds: give one kind a node", n.Nodes, len(n.Switch))
	}
	cables := make([]int, n.Nodes)
	for i, c := range n.Cables {
		switch {
		case c.A < 0 || int(c.A) >= n.Nodes || c.B < 0 || int(c.B) >= n.Nodes:
			return Wrong("cable %d joins nodes %d and %d: there are nodes 0 to %d", i, c.A, c.B, n.Nodes-1)
		case c.A == c.B:
			return Wrong("cable %d joins node %d to itself", i, c.A)
		case c.Rate < 1e6 || c.Rate > 1e14:
			return Wrong("cable %d: %d bit/s: write 1 Mb/s to 100 Tb/s", i, c.Rate)
		case c.Delay < units.Nanosecond || c.Delay > units.Second:
			return Wrong("cable %d: a delay of %v: write 1 ns to 1 s (windows are as long as the least "+
				"delay)", i, c.Delay)
		case !(c.Loss >= 0 && c.Loss <= 1):
			return Wrong("cable %d: a loss of %g: write a probability from 0 to 1", i, c.Loss)
		}
		cables[c.A]++
		cables[c.B]++
	}
	for i, k := range cables {
		switch {
		case !n.Switch[i] && k > 1:
			return &cc.UnsupportedError{What: "a host with more than one cable",
				Found: fmt.Sprintf("host %d with %d", i, k)}
		case k > 1<<16-1:
			return &cc.UnsupportedError{What: "a switch with more than 65535 ports",
				Found: fmt.Sprintf("switch %d with %d", i, k)}
		}
	}
	return nil
}

func checkFlow(n *Network, i int, f *Flow, flows int) error {
	switch {
	case f.Src < 0 || int(f.Src) >= n.Nodes || n.Switch[f.Src]:
		return Wrong("flow %d: source %d is not a host", i, f.Src)
	case f.Dst < 0 || int(f.Dst) >= n.Nodes || n.Switch[f.Dst]:
		return Wrong("flow %d: destination %d is not a host", i, f.Dst)
	case f.Src == f.Dst:
		return Wrong("flow %d: host %d sends to itself", i, f.Src)
	case f.Bytes < 1:
		return Wrong("flow %d: %d bytes: write at least 1", i, f.Bytes)
	case f.Priority < 1 || f.Priority > 7:
		return Wrong("flow %d: priority %d: write 1 to 7", i, f.Priority)
	case f.Start < 0 || f.Start > MaxTime:
		return Wrong("flow %d: starts at %v: write 0 to %v", i, f.Start, MaxTime)
	}
	for _, d := range f.Deps {
		if d < 0 || int(d) >= flows || int(d) == i {
			return Wrong("flow %d: depends on flow %d: there are flows 0 to %d, and none may wait for itself",
				i, d, flows-1)
		}
	}
	return nil
}

func (c *Config) check() error {
	f := &c.Frames
	switch {
	case f.Payload < 1 || f.Header < 0 || f.First < 0 || f.Last < 0 || f.Most() > 1<<16-1:
		return Wrong("frames of %d bytes of payload and %d of header: write 1 to %d in all", f.Payload,
			f.Header, 1<<16-1)
	case f.Ack < 1 || f.Ack > 1<<16-1 || f.Pause < 1 || f.Pause > 1<<16-1:
		return Wrong("acknowledgements of %d bytes and pause frames of %d: write 1 to %d", f.Ack, f.Pause,
			1<<16-1)
	case c.CutThrough != 0 && c.CutThrough < LeastHead || c.CutThrough > 1<<16-1:
		return Wrong("switches that begin to send with the first %d bytes of a frame: write %d to %d, or 0 "+
			"to store all of it", c.CutThrough, LeastHead, 1<<16-1)
	case c.CutThrough > 0 && c.EventOrder:
		return Wrong("switches that cut through in the order of events of a simulator whose switches store " +
			"and forward: leave one out")
	case c.CC.CNPBytes > 0 && c.EventOrder:
		return Wrong("notifications in frames of their own in the order of events of a simulator that " +
			"marks acknowledgements: leave one out")
	case c.Buffer.Quanta > 0 && c.EventOrder:
		return Wrong("pauses that end by themselves in the order of events of a simulator whose pauses do " +
			"not: leave one out")
	case c.AckFrom < 1:
		return Wrong("acknowledgements from %d bytes on: write at least 1", c.AckFrom)
	case c.Repair.Timeout < 0 || c.Repair.Retries < 0:
		return Wrong("a timeout of %v and %d retries: write 0 or more", c.Repair.Timeout, c.Repair.Retries)
	case c.Paths < 0 || c.Paths > 1024 || c.Paths > 1 && (!c.Repair.Selective || c.Repair.Reorder == 0):
		return Wrong("%d paths a flow: write 1 to 1024; for more than one, receivers must take frames out "+
			"of order (Repair.Selective, Reorder)", c.Paths)
	case c.Repair.BackTo < 0 || c.Repair.BackTo > 0 &&
		(c.Repair.Selective || c.Repair.BackTo%int64(f.Payload) != 0):
		return Wrong("gaps that lead back to multiples of %d bytes: write a multiple of the payload, %d, "+
			"without selective repeat", c.Repair.BackTo, f.Payload)
	case c.EventOrder && !c.WholeNanos:
		return Wrong("the order of events without whole nanoseconds: set both")
	case c.MarkAtEnqueue && c.EventOrder:
		return Wrong("marks at enqueue in the order of events of a simulator that marks at dequeue: leave " +
			"one out")
	case c.MessageGap < 0:
		return Wrong("%v between messages: write 0 or more", c.MessageGap)
	case c.NackGap < 0:
		return Wrong("%v between NAKs: write 0 or more", c.NackGap)
	}
	if err := c.checkBuffer(); err != nil {
		return err
	}
	if c.Watchdog.After < 0 || c.Watchdog.Restore < 0 || c.AckHold < -1 || c.AckHold > 7 {
		return Wrong("a watchdog after %v and %v, acknowledgements held by priority %d: none may be "+
			"negative, priorities are 1 to 7", c.Watchdog.After, c.Watchdog.Restore, c.AckHold)
	}
	if err := c.Routing.check(c); err != nil {
		return err
	}
	var bad *cc.SettingError
	if err := c.CC.Check(); errors.As(err, &bad) {
		return &InputError{bad.Problem}
	} else if err != nil {
		return err
	}
	return nil
}

// checkBuffer checks the memory of switches: shares, credits, trimming, pauses.
func (c *Config) checkBuffer() error {
	f := &c.Frames
	switch {
	case c.Buffer.Bytes < 1 || c.Buffer.Bytes > 1<<40 || c.Buffer.Reserve < 0 || c.Buffer.Shift < -3 ||
		c.Buffer.Shift > 40 || c.Buffer.HeadroomDelays < 0 || c.Buffer.Headroom < 0:
		return Wrong("a buffer of %d bytes with %d in reserve, shift %d and %d delays of headroom: sizes "+
			"are positive, the shift from -3 to 40",
			c.Buffer.Bytes, c.Buffer.Reserve, c.Buffer.Shift, c.Buffer.HeadroomDelays)
	case c.Buffer.Credits < 0 || c.Buffer.Credits > 0 && c.Buffer.Credits < int64(f.Most()):
		return Wrong("credits of %d bytes: a frame of %d must fit", c.Buffer.Credits, f.Most())
	case c.Buffer.Trim < 0 || c.Buffer.Trim > 0 && (c.Buffer.Credits > 0 || c.Buffer.Trim < int64(f.Most())):
		return Wrong("frames are cut where more than %d bytes wait: a frame of %d must fit, and links must "+
			"be without credits", c.Buffer.Trim, f.Payload+f.Header)
	case c.Buffer.Trim > 0 && (!c.Repair.Selective || c.Repair.Reorder == 0):
		return Wrong("frames that are cut overtake others: let receivers take them out of order " +
			"(Repair.Selective, Reorder)")
	case c.Buffer.XOff < 0 || c.Buffer.XOn < 0 || c.Buffer.XOn > c.Buffer.XOff:
		return Wrong("thresholds of %d bytes for a pause and %d to resume: the second is at most the first",
			c.Buffer.XOff, c.Buffer.XOn)
	case c.Buffer.Quanta < 0 || c.Buffer.Quanta > 65535 || c.Buffer.Quanta > 0 &&
		c.Buffer.Quanta < c.LeastQuanta():
		return Wrong("pauses of %d quanta of 512 bit times: write %d to 65535, so that one is repeated "+
			"before it ends, or 0: without an end", c.Buffer.Quanta, c.LeastQuanta())
	case c.Buffer.Quanta > 0 && (c.Buffer.Credits > 0 || c.Buffer.Trim > 0):
		return Wrong("pauses of %d quanta where credits or cut frames replace pauses: leave one out",
			c.Buffer.Quanta)
	}
	return nil
}

// LeastHead is how many bytes of a frame a switch must have to know where it goes: its headers.
const LeastHead = 64

// MaxTime leaves room for sums: 100 days.
const MaxTime = 100 * 24 * 3600 * units.Second
