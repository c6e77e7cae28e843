// Package spec declares packet networks, flows and settings, their results, and the checks of all of these.
//
// In: settings. Out: errors. It must not know how frames are simulated.
package spec

import (
	"cmp"
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
	Rate  int64 // bit/s in each direction
	Delay units.Time
	// Loss is the probability that a frame is lost on arrival, in each direction.
	Loss       float64
	SharedLoss bool // see Config.LossStream
}

// Network is nodes 0 to Nodes-1 and the cables between them; Switch[i] reports whether node i is a switch. A
// host has one cable.
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
	Start    units.Time // earliest start
	// Window (bytes) and BaseRTT override those of CC if not 0.
	Window  int64
	BaseRTT units.Time
	// Deps are indices of flows that must end first: the flow starts a nanosecond after their last
	// acknowledgement.
	Deps []int32
	// Path and Back are the cables that data and acknowledgements cross; empty: ECMP chooses.
	Path, Back []int32
}

// Frames are the sizes of frames on the wire, in bytes.
type Frames struct {
	Payload int // largest payload of a data frame
	Header  int // of a data frame
	Ack     int // whole acknowledgement
	Pause   int // whole PFC frame
	// First and Last are extra bytes of the first and last data frame of a Live run's message: the remote
	// address (RETH), immediate data.
	First, Last int
}

// Most returns the bytes of the largest data frame.
func (f *Frames) Most() int { return f.Payload + f.Header + f.First + f.Last }

// Speeds returns the distinct rates of cables in bit/s, and the longest delay.
func (n *Network) Speeds() (rates []int64, most units.Time) {
	for i := range n.Cables {
		c := &n.Cables[i]
		if most = max(most, c.Delay); !slices.Contains(rates, c.Rate) {
			rates = append(rates, c.Rate)
		}
	}
	return rates, most
}

// Marking is RED/ECN at the egress queues of links of one rate.
type Marking struct {
	Rate       int64 // bit/s
	KMin, KMax int64 // bytes
	PMax       float64
}

// MarksOf returns thresholds for each rate of a network's cables: those of the nearest rate of Marking,
// scaled in proportion.
func (c *Config) MarksOf(n *Network) (out []Marking) {
	if len(c.Marking) == 0 {
		return nil
	}
	rates, _ := n.Speeds()
	for _, rate := range rates {
		distance := func(m Marking) float64 { return math.Abs(math.Log(float64(m.Rate) / float64(rate))) }
		near := slices.MinFunc(c.Marking, func(a, b Marking) int {
			return cmp.Compare(distance(a), distance(b))
		})
		scale := float64(rate) / float64(near.Rate)
		out = append(out, Marking{Rate: rate, KMin: int64(float64(near.KMin) * scale),
			KMax: int64(float64(near.KMax) * scale), PMax: near.PMax})
	}
	return out
}

// Control replaces the congestion control and the settings that depend on it: INT in HPCC's frames, an
// acknowledgement per frame where the window may be smaller than the frames that one acknowledgement covers,
// and the ECN thresholds that it needs at the given link rates (bit/s) for a round trip over four links with
// delay hop. own keeps the present thresholds.
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

// roundTrip returns the round trip of a full frame over four links of the given rate, each with delay hop.
func (c *Config) roundTrip(rate int64, hop units.Time) units.Time {
	frames := c.Frames.Payload + c.Frames.Header + c.Frames.Ack
	return 4 * (2*hop + units.Time(float64(frames)*8e12/float64(rate)))
}

// Cut turns packet trimming on: a frame that finds no room in an egress queue is cut to its header. The queue
// has the given bytes or, with 0, the bandwidth-delay product of a round trip over four links of a rate with
// delay hop, in whole frames (htsim, main_uec.cpp). Receivers then acknowledge each frame in the highest
// priority and accept frames out of order.
func (c *Config) Cut(bytes, rate int64, hop units.Time) {
	if frame := float64(c.Frames.Payload + c.Frames.Header); bytes == 0 {
		bytes = int64(math.Ceil(float64(rate)/8*float64(c.roundTrip(rate, hop))/1e12/frame) * frame)
	}
	c.Buffer.Trim, c.AckFrom, c.AckHigh = bytes, 1, true
	c.Repair.Selective, c.Repair.Reorder = true, Overtaken
}

// Overtaken is the value of Repair.Reorder where frames take several routes, or overtake others by design.
const Overtaken = 1 << 16

// Buffer is a switch's packet memory and the rules by which it pauses, grants credits or trims.
type Buffer struct {
	Bytes        int64 // total
	Reserve      int64 // reserved for each ingress port and priority, never shared
	ResumeOffset int64 // RESUME is sent this many bytes below the threshold
	// Shift is the dynamic threshold: an ingress queue may fill free shared memory >> Shift. Shift is one
	// less (but not below 0) for each doubling of a port's rate over that of hosts. Negative values, down to
	// -3, let a queue use 2, 4 or 8 times the free memory as long as any is free (SONiC's alpha).
	Shift int
	// HeadroomDelays is an ingress port's headroom: the bytes that its link carries in this many delays of
	// its cable. Headroom is added to it.
	HeadroomDelays int
	Headroom       int64
	// XOff and XOn, if not 0, are fixed thresholds of an ingress queue in bytes in place of Shift: PAUSE at
	// XOff, RESUME at XOn.
	XOff, XOn int64
	// Quanta, if not 0, is the duration of a pause in quanta of 512 bit times (IEEE 802.1Qbb: at most
	// 65,535); a switch renews a pause after half of it. 0: a pause lasts until RESUME, as in ns-3.
	Quanta int
	// Credits, if not 0, selects InfiniBand's credits: the receive buffer of each link and priority in bytes.
	// The other fields of Buffer are then unused.
	Credits int64
	// Trim, if not 0, selects packet trimming (Ultra Ethernet): an egress queue holds at most this many
	// bytes; a data frame that finds no room is cut to its header, which is sent before data. The other
	// fields of Buffer are then unused.
	Trim int64
}

// Config is the behaviour of hosts and switches.
type Config struct {
	Seed    uint64
	Frames  Frames
	Buffer  Buffer
	Marking []Marking // empty: no ECN
	// MarkAtEnqueue marks a frame by the length of the queue that it joins, not of the queue that it leaves
	// behind: the receiver then learns of the queue later, by the frame's own waiting time.
	MarkAtEnqueue bool
	// MessageGap is the least time between two flows, or messages of a Live run, that a host starts: the
	// inverse of its NIC's message rate.
	MessageGap units.Time
	CC         cc.Params
	// WholeNanos truncates transmission times and gaps to whole nanoseconds, as ns-3 does.
	WholeNanos bool
	// EventOrder orders simultaneous events as an event queue does: by the time at which they were scheduled.
	EventOrder bool
	// EventOrderAlways keeps that order from the first frame on. Without it, a run of more than 1,000 frames
	// in which no frame is marked or lost, and whose congestion control does not read each frame, uses the
	// order of ports, which is cheaper: of 80 such runs two makespans then differed from ns-3's, by 0.004 and
	// 1.9 %.
	EventOrderAlways bool
	// Stream, if not 0, draws marks with EventOrder as ns-3 does: each with the first number of its own
	// random stream; Stream is the first of these, in run Seed.
	Stream uint64
	// LossStream, if not 0, draws losses with EventOrder from this random stream: each cable has its own
	// copy, cables with SharedLoss share one.
	LossStream uint64
	// CutThrough, if not 0, is the number of bytes of a frame after which a switch begins to forward it,
	// unless the egress link is faster; 0: store-and-forward.
	CutThrough int
	AckHigh    bool // acknowledgements have the highest priority
	// AckHold is the priority whose pauses hold acknowledgements at hosts; 0: the priority of their flow, -1:
	// none.
	AckHold  int8
	AckFrom  int64      // bytes received in order from which on every frame is acknowledged
	AckChunk int64      // before that, multiples of AckChunk bytes are acknowledged; 0: none
	NackGap  units.Time // least time between two NAKs of one frame
	Repair   Repair
	// Paths is the number of source ports, hence hashed paths, over which a flow's frames are sprayed; 0 and
	// 1: one. More than one needs Repair.Selective with Reorder.
	Paths    int
	Faults   []Fault // faults of one cable may overlap
	Routing  Routing
	Watchdog Watchdog
	Stop     units.Time // end of the simulation; 0: when all flows have ended
	Workers  int        // goroutines; 0 and 1: the caller's only
	// Every, if not 0, fills Result.Series: queues, rates and pauses at this interval. It affects no other
	// result.
	Every units.Time
	// Poll is called periodically; an error ends the run.
	Poll func() error
}

// InputError reports an invalid network, flow or setting; Problem says what to change.
type InputError struct{ Problem string }

func (e *InputError) Error() string { return e.Problem }

// Wrong returns an InputError with a formatted problem.
func Wrong(format string, args ...any) error { return &InputError{fmt.Sprintf(format, args...)} }

// Check validates a network, flows and settings. Errors: *InputError, *cc.UnsupportedError.
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
	case c.Every < 0:
		return Wrong("a sample each %v: write 0 (none) or more", c.Every)
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

// LeastHead is the smallest CutThrough: the headers that a switch needs to route a frame, in bytes.
const LeastHead = 64

// MaxTime bounds start times, so that sums do not overflow: 100 days.
const MaxTime = 100 * 24 * 3600 * units.Second
