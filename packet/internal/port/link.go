package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

const never = int64(1<<63 - 1)

// Report is the flow of a frame that brings credits back; its size is theirs.
const Report = -2

// Queue is an egress queue of one class.
type Queue struct {
	frames.Lane
	Bytes int64
}

// Link is one direction of a cable with the egress port that feeds it.
//
// What each frame touches is in the first two lines of a cache, and in a third in switches.
type Link struct {
	Free            int64     // when the frame in transmission ends
	Alert           int64     // bytes behind a frame from which on it may be marked
	Lasts           [2]int64  // ps of the sizes seen last, of data and of acknowledgements
	Sizes           [2]uint16 // those sizes
	Waiting, Paused uint16    // classes that have frames; that may not start one
	Asked, FromPort uint16    // classes that the neighbour has paused
	Turn            uint8     // class served last
	Marks, Lossy    bool      // ECN is on
	Odd             bool      // credit or hol is set
	ID, To          int32
	Begun           tiebreak.Number // of the frame in transmission
	Ahead           bool            // frames are put onto it before they are at the switch

	Wire    frames.Ring // what travels
	Delay   int64
	TxBytes int64
	Sent    uint64 // frames
	Start   int64  // when the frame in transmission began

	Peak   int64
	Queues []Queue // by class, of switches
	Data   int64   // bytes of data frames
	KMin   int64
	KMax   int64
	Coded  int64 // rate in the telemetry of frames, with HPCC

	Whole, Ack int64 // ps that a full data frame and an acknowledgement last
	PMax, Loss float64
	Rate       int64
	Arrivals   uint64       // frames
	Queued     uint64       // frames, with MarkAtEnqueue
	Credit     []int64      // by class, of InfiniBand
	Returns    frames.Ring  // credits on their way back
	Lost       *frames.Ring // credits of frames that were lost in this window
	Watch      *PFCWatchdog // of switches, with a watchdog
	Timer      *PauseTimer  // of pauses that end by themselves
	HOL        *Pauses      // once it was paused
	Stats      Stats
	From, Peer int32
	// the only link over which its frames come to the switch, and nothing holds them up; -1: none
	Feeder int32
	Down   bool // the cable is, and its ends know
	Storm  bool // paused all the time, whatever is asked for
	Drawn  bool // its losses are in a stream
	// ps that the first bytes of a frame last, with which a switch begins to send it on; 0: it waits for all
	Head    int64
	Nominal int64    // Rate without faults
	_       [11]byte // whole lines of a cache
}

// Stats is what happened where a link begins, for reports alone.
type Stats struct {
	Marks, Pauses, Drops, Barks int64
	Trims                       int64
	Since, Paused               int64 // when the present pause began, and all before
	Stormed                     int64 // when the storm began
}

// Hold sets the classes that may not start a frame.
func (l *Link) Hold() {
	l.Paused = l.Asked
	if l.Storm {
		l.Paused = ^uint16(1)
	}
}

// Note keeps the times of a link's pauses that the neighbour asked for, during a storm too; before is what
// it had asked for.
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

// Held is the bytes that wait at a port. Most ports have queues of control and of one class of data.
func (l *Link) Held() (bytes int64) {
	if q := l.Queues; len(q) == 2 {
		return q[0].Bytes + q[1].Bytes
	}
	for i := range l.Queues {
		bytes += l.Queues[i].Bytes
	}
	return bytes
}

// Deepen notes how much waits at a port after a frame came to one of its queues: of all priorities
// together, as the peers watch queues, but without control.
func (l *Link) Deepen(q *Queue, class uint8) {
	bytes := q.Bytes
	if class != 0 && l.Waiting&^(1<<class|1) != 0 {
		bytes = l.Held() - l.Queues[0].Bytes
	}
	l.Peak = max(l.Peak, bytes)
}

// Backlog is the bytes that a link has to send, with the rest of the frame in
// transmission.
func (l *Link) Backlog(at int64) int64 {
	bytes := l.Held()
	if l.Free > at {
		bytes += int64(float64(l.Free-at) * float64(l.Rate) / 8e12)
	}
	return bytes
}

// Repay sends the room that a frame left back over the link by which it came, if that has credits.
func (l *Link) Repay(f *frames.Frame, at int64) {
	if f.Class != 0 && l.Credit != nil {
		l.Returns.Push(&frames.Frame{At: at + l.Delay, Flow: Report, Size: f.Size, Class: f.Class})
	}
}

// Refund sends the room for frames that were lost on their way in a window back, as the other end learns
// from the next flow control packet how much was sent. It is called between windows: while one goes on, both
// ends use Returns.
func Refund(links []Link, b *spec.Buffer) {
	for i := 0; i < len(links) && b.Credits > 0; i++ {
		for l := &links[i]; !l.Lost.Empty(); l.Lost.Head++ {
			l.Returns.Insert(l.Lost.Front())
		}
	}
}

// Spend takes the credit that a frame needs.
func (l *Link) Spend(f *frames.Frame) {
	if f.Class != 0 {
		l.Credit[f.Class] -= int64(f.Size)
	}
}

// Ask is a PFC frame of the neighbour that pauses a class from a time on, or lets it go on.
func (l *Link) Ask(class uint32, pause bool, at int64) {
	before := l.Asked
	if pause {
		l.Stats.Pauses++
		l.Asked |= 1 << class
	} else {
		l.Asked &^= 1 << class
	}
	if before == 0 {
		l.Stats.Since = at
	} else if l.Asked == 0 {
		l.Stats.Paused += at - l.Stats.Since
	}
	l.Hold()
}

// Measure finds how long a frame of another size lasts, of data (0) or of acknowledgements (1).
func (l *Link) Measure(c *spec.Config, what uint8, bytes uint16) {
	l.Sizes[what], l.Lasts[what] = bytes, c.Lasts(int(bytes), l.Rate)
}

// Travel is how long, in ps, a frame of so many bytes is on its way; data frames mostly have full, and
// acknowledgements ack.
func (l *Link) Travel(c *spec.Config, size, full, ack uint16) int64 {
	switch size {
	case full:
		return l.Delay + l.Whole
	case ack:
		return l.Delay + l.Ack
	}
	return l.Delay + c.Lasts(int(size), l.Rate)
}

// Gate holds the classes back from a time on whose next frame has no credit; a host's next
// frame may be as large as any. It says whether that begins. The time that something waits for credit counts
// as a pause of the port.
func (l *Link) Gate(most, at int64) (begins bool) {
	before := l.Asked
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
	switch p := &l.Stats; {
	case before == 0 && l.Asked != 0:
		p.Since, begins = at, true
	case before != 0 && l.Asked == 0 && p.Since >= 0:
		p.Paused += at - p.Since
	}
	l.Hold()
	return begins
}

// MarkQueued marks the last frame of a queue, or draws whether to, by what waits before it.
func (l *Link) MarkQueued(q *Queue, seed uint64) bool {
	f := q.Back()
	if q.Bytes == 0 && l.Waiting == 1<<f.Class && l.Free < f.At && l.Paused>>f.Class&1 == 0 {
		// it leaves at once: it does not count, as where ports are simulated one by one it is in no queue
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

// Loses draws whether the next frame of a link is lost.
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
