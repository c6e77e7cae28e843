package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

const never = int64(1<<63 - 1)

// Report is the flow of a frame that returns credits; its size is their number in bytes.
const Report = -2

// Queue is the egress queue of one class, with its length in bytes.
type Queue struct {
	frames.Lane
	Bytes int64
}

// Link is one direction of a cable with the egress port that feeds it.
//
// Fields are in the order of use: each frame touches the first two cache lines, in switches a third.
type Link struct {
	Free            int64     // end of the transmission in progress (ps)
	Alert           int64     // least queue length behind a frame at which it may be marked
	Lasts           [2]int64  // transmission times of frames of Sizes (ps)
	Sizes           [2]uint16 // sizes last used: data, acknowledgement
	Waiting, Paused uint16    // bits: classes with frames; classes that may not start one
	Asked, FromPort uint16    // bits: classes paused by the neighbour; port number
	Turn            uint8     // class served last
	Marks, Lossy    bool      // ECN is on; frames may be lost
	Odd             bool      // a rare feature is on (credits, pauses recorded, trimming)
	ID, To          int32
	Begun           tiebreak.Number // number of the transmission in progress
	Ahead           bool            // frames may be put onto it before they reach its switch (Both)

	Wire    frames.Ring // frames on the cable
	Delay   int64
	TxBytes int64
	Sent    uint64 // frames sent
	Start   int64  // start of the transmission in progress

	Peak   int64
	Queues []Queue // by class; nil: a host's link
	Data   int64   // bytes of data frames sent
	KMin   int64
	KMax   int64
	Coded  int64 // rate as HPCC's telemetry encodes it

	Whole, Ack int64 // transmission times of a full data frame and of an acknowledgement (ps)
	PMax, Loss float64
	Rate       int64
	Arrivals   uint64       // frames that arrived: number of the loss draw
	Queued     uint64       // frames queued: number of the mark's draw, with MarkAtEnqueue
	Credit     []int64      // by class: bytes that the neighbour has room for (InfiniBand)
	Returns    frames.Ring  // credits on their way back to this link
	Lost       *frames.Ring // credits of frames lost in this window
	Watch      *PFCWatchdog // of switches, with Config.Watchdog
	Timer      *PauseTimer  // pauses with a duration; nil: they last until RESUME
	HOL        *Pauses      // head-of-line blocking, once the link was paused
	Stats      Stats
	From, Peer int32
	// the only link whose frames leave the switch here, which Both may use; -1: none
	Feeder int32
	Down   bool // the cable is cut, and both ends know
	Storm  bool // paused permanently, whatever the neighbour asks for
	Drawn  bool // losses are drawn from a stream (LossDraws)
	// cut-through: transmission time of the first bytes, after which the switch forwards; 0:
	// store-and-forward
	Head    int64
	Nominal int64    // Rate without faults
	_       [11]byte // fills the cache line
}

// Stats are counters of a port for reports; nothing depends on them.
type Stats struct {
	Marks, Pauses, Drops, Triggers int64
	Trims                          int64
	Since, Paused                  int64 // start of the present pause; paused time before it (ps)
	_                              int64 // fills the cache line
}

// Hold computes Paused from the classes that the neighbour pauses (Asked), and from a pause storm, which
// blocks all classes but control.
func (l *Link) Hold() {
	l.Paused = l.Asked
	if l.Storm {
		l.Paused = ^uint16(1)
	}
}

// Note records the start or end of a pause for the report of head-of-line blocking. before is the value of
// Asked before frame f.
func (l *Link) Note(before uint16, f *frames.Frame) {
	switch {
	case before == 0 && l.Asked != 0:
		if l.HOL == nil {
			l.HOL, l.Odd = &Pauses{First: f.At}, true
		}
		l.HOL.Begin(f.At, int32(f.Aux)-1)
	case before != 0 && l.Asked == 0:
		l.HOL.End(f.At)
	}
}

// Held returns the queued bytes of all classes.
func (l *Link) Held() (bytes int64) {
	if q := l.Queues; len(q) == 2 {
		return q[0].Bytes + q[1].Bytes
	}
	for i := range l.Queues {
		bytes += l.Queues[i].Bytes
	}
	return bytes
}

// UpdatePeak updates the port's peak after a frame joined q: the sum over all data classes, as ns-3 and htsim
// report it.
func (l *Link) UpdatePeak(q *Queue, class uint8) {
	bytes := q.Bytes
	if class != 0 && l.Waiting&^(1<<class|1) != 0 {
		bytes = l.Held() - l.Queues[0].Bytes
	}
	l.Peak = max(l.Peak, bytes)
}

// Backlog returns the bytes still to send, including the rest of the transmission in progress.
func (l *Link) Backlog(at int64) int64 {
	bytes := l.Held()
	if l.Free > at {
		bytes += int64(float64(l.Free-at) * float64(l.Rate) / 8e12)
	}
	return bytes
}

// Repay returns the credit of a frame that has left the buffer at this link's end; it arrives one cable delay
// later.
func (l *Link) Repay(f *frames.Frame, at int64) {
	if f.Class != 0 && l.Credit != nil {
		l.Returns.Push(&frames.Frame{At: at + l.Delay, Flow: Report, Size: f.Size, Class: f.Class})
	}
}

// Refund returns the credits of frames that were lost in a window, as InfiniBand's next flow control packet
// would. It runs between windows: within one, both ends of a link use Returns.
func Refund(links []Link, b *spec.Buffer) {
	for i := 0; i < len(links) && b.Credits > 0; i++ {
		for l := &links[i]; !l.Lost.Empty(); l.Lost.Head++ {
			l.Returns.Insert(l.Lost.Front())
		}
	}
}

// Spend takes a frame's credit.
func (l *Link) Spend(f *frames.Frame) {
	if f.Class != 0 {
		l.Credit[f.Class] -= int64(f.Size)
	}
}

// Ask applies a PFC frame of the neighbour: PAUSE or RESUME of a class at a time.
func (l *Link) Ask(class uint32, pause bool, at int64) {
	was := l.Stopped()
	if pause {
		l.Stats.Pauses++
		l.Asked |= 1 << class
	} else {
		l.Asked &^= 1 << class
	}
	l.stop(was, at)
	l.Hold()
}

// Stopped reports whether some class is paused: by the neighbour, for want of credit or by a storm.
func (l *Link) Stopped() bool { return l.Asked != 0 || l.Storm }

// stop counts paused time where the link stops or goes on; was is whether it was stopped before. A pause
// during another one counts once.
func (l *Link) stop(was bool, at int64) {
	switch is := l.Stopped(); {
	case !was && is:
		l.Stats.Since = at
	case was && !is && l.Stats.Since >= 0:
		l.Stats.Paused += at - l.Stats.Since
	}
}

// Measure caches the transmission time for frames of a new size; what is 0 for data, 1 for acknowledgements.
func (l *Link) Measure(c *spec.Config, what uint8, bytes uint16) {
	l.Sizes[what], l.Lasts[what] = bytes, c.Lasts(int(bytes), l.Rate)
}

// Travel returns transmission time plus delay of a frame of size bytes, in ps. The times of full data frames
// and acknowledgements are cached.
func (l *Link) Travel(c *spec.Config, size, full, ack uint16) int64 {
	switch size {
	case full:
		return l.Delay + l.Whole
	case ack:
		return l.Delay + l.Ack
	}
	return l.Delay + c.Lasts(int(size), l.Rate)
}

// Gate blocks the classes whose next frame lacks credit (at a host, whose queue is not known here: credit for
// the largest frame). It returns true if a blockage begins. Blocked time counts as paused.
func (l *Link) Gate(most, at int64) (begins bool) {
	before, was := l.Asked, l.Stopped()
	for c := 1; c < len(l.Credit); c++ {
		need := most
		if l.Queues != nil {
			need = 0
			if q := &l.Queues[c]; !q.Empty() {
				need = int64(q.Front().Size)
			}
		}
		l.Asked &^= 1 << c
		if l.Credit[c] < need {
			l.Asked |= 1 << c
		}
	}
	l.stop(was, at)
	l.Hold()
	return before == 0 && l.Asked != 0
}

// MarkQueued applies RED to a frame just queued, by the bytes before it (MarkAtEnqueue), and reports whether
// it was marked.
func (l *Link) MarkQueued(q *Queue, seed uint64) bool {
	f := q.Back()
	if q.Bytes == 0 && l.Waiting == 1<<f.Class && l.Free < f.At && l.Paused>>f.Class&1 == 0 {
		// the frame leaves at once and does not count: where ports are simulated one by one it is in no queue
		return false
	}
	if l.Queued++; !l.Marks || f.Class == 0 || f.Flags&frames.Ack != 0 || q.Bytes <= l.KMin {
		return false
	}
	if q.Bytes <= l.KMax && rng.Hash(seed, l.ID, rng.Mark, l.Queued) >= l.PMax*float64(q.Bytes-l.KMin)/
		float64(l.KMax-l.KMin) {
		return false
	}
	f.Flags |= frames.CE
	l.Stats.Marks++
	return true
}

// Loses reports whether an arriving frame is lost, by a hash of seed, link and number of arrival, or by the
// flag that LossDraws set. The credit of a lost frame goes to Lost.
func (l *Link) Loses(f *frames.Frame, seed uint64) bool {
	l.Arrivals++
	if l.Drawn && f.Flags&frames.Lost == 0 || !l.Drawn && rng.Hash(seed, l.ID, rng.Loss, l.Arrivals) >=
		l.Loss {
		return false
	}
	if l.Stats.Drops++; l.Credit != nil && f.Class != 0 {
		l.Lost.Push(&frames.Frame{At: f.At + l.Delay, Flow: Report, Size: f.Size, Class: f.Class})
	}
	return true
}
