package qp

import (
	"github.com/simccl/simccl/packet/cc"
)

// Sender is the sending half of a queue pair, with sequence numbers of frames:
//
//	0 … acknowledged | in flight | to send … Frames
//	                 ^Una        ^Nxt
//
// Fields are in the order of use: each frame touches the first cache line, with DCQCN the second.
type Sender struct {
	Frames, Nxt, Una uint32 // data frames of the flow; next to send; first unacknowledged
	Class            uint8
	Ending, Ended    bool
	Gapped           bool  // Gaps is in use
	NextAvail        int64 // time (ps) from which pacing allows the next frame
	cc.Rate
	Window int64 // most bytes in flight; 0: unbounded
	Route  uint32
	Last   uint16 // bytes of the frame sent last
	Listed bool   // in its host's round robin (Live runs)
	_      [1]byte

	Dcqcn   cc.Reaction
	Bytes   int64
	Retries int32
	Resent  uint32 // frames
	// when Una last moved, or sending began: the timeout runs from then; with Repair.Stubborn the end of the
	// flow
	Moved int64
	Gaps  SACKMap // up to a whole cache line
}

// Receiver is the receiving half of a queue pair: the expected frame, and the times of its NAKs and CNPs.
type Receiver struct {
	Expected uint32
	LastNak  uint32
	NakAt    int64 // no second NAK of frame LastNak before this time (ps)
	Back     uint32
	CnpAt    int64  // no CNP before this time (ps)
	Came     Bitmap // frames above Expected that have arrived, with selective repeat
	Forgot   bool   // Forget has reset the receiver
	_        [7]byte
}

// Forget resets the receiver, at most once, if the sender's flow ended before time at, and reports whether it
// did: ns-3's receivers then drop a flow's state and treat later frames as a new flow's.
func (r *Receiver) Forget(s *Sender, at int64) bool {
	if r.Forgot || !s.Ending || s.Moved >= at {
		return false
	}
	*r = Receiver{Back: r.Back, Forgot: true}
	return true
}

// Results of Receiver.Take: what the arrived frame was.
const (
	Next    = iota // the expected frame
	Apart          // out of order, kept
	Again          // a duplicate
	Missing        // out of order, dropped: NAK the expected frame
	Silent         // as Missing, but a NAK was sent recently
)

// Take handles a data frame at a time (ps) and returns its kind. With selective repeat it takes any frame,
// else only frames other than the expected one. gap is the least time between two NAKs of one frame.
func (r *Receiver) Take(psn uint32, at int64, selective bool, gap int64) (what int) {
	switch {
	case selective && psn >= r.Expected:
		if psn != r.Expected {
			what = Apart
		}
		r.Expected = r.Came.Take(psn, r.Expected)
	case psn < r.Expected:
		return Again
	case at < r.NakAt && r.LastNak == r.Expected:
		return Silent
	default:
		r.NakAt, r.LastNak = at+gap, r.Expected
		return Missing
	}
	return what
}

// Notifies reports whether to send a CNP: at least gap ps after the last one.
func (r *Receiver) Notifies(at, gap int64) bool {
	if at < r.CnpAt {
		return false
	}
	r.CnpAt = at + gap
	return true
}

// Advance acknowledges all frames before to.
func (s *Sender) Advance(to uint32) {
	if s.Gapped {
		s.Gaps.Advance(s.Una, to)
	}
	s.Una = to
}

// Reported records a selective acknowledgement; frames more than reorder before it count as lost.
func (s *Sender) Reported(psn, reorder uint32) {
	if psn >= s.Una && psn < s.Nxt {
		s.Gapped = true
		s.Gaps.Came(psn, s.Una, reorder)
	}
}

// Due returns when the retransmission timeout expires; never if no frame is in flight.
func (s *Sender) Due(timeout int64) int64 {
	if s.Una >= s.Nxt {
		return 1<<63 - 1
	}
	return s.Moved + timeout
}

// GivesUp counts a timeout and reports whether the flow fails: after most timeouts in a row (0: never).
func (s *Sender) GivesUp(now int64, most int32) bool {
	s.Moved, s.NextAvail = now, min(s.NextAvail, now)
	if s.Retries++; most == 0 || s.Retries <= most {
		return false
	}
	s.Una, s.Nxt, s.Ended, s.Ending = s.Frames, s.Frames, true, true
	return true
}

// Again schedules the retransmission of all frames in flight. Go-back-N sends them all again and returns
// their number; selective repeat returns 0 and sends each again when its turn comes, unless it was
// acknowledged since.
func (s *Sender) Again(selective bool) int64 {
	if selective {
		s.Gapped = true
		s.Gaps.Lost(s.Una, s.Nxt)
		return 0
	}
	n := s.Nxt - min(s.Nxt, s.Una)
	s.Resent += n
	s.Nxt = s.Una
	return int64(n)
}

// Held reports whether the flow has ended while its class is paused.
func (s *Sender) Held(paused uint16) bool { return s.Una >= s.Frames && paused>>s.Class&1 != 0 }

// Linger reports whether a sender that went back after the end of its flow keeps retransmitting, as ns-3's
// does without a window.
func (s *Sender) Linger() bool {
	if s.Nxt < s.Frames && s.Window > 0 { // a negative number in flight wraps around and exceeds any window
		s.Nxt = s.Frames
	}
	return s.Nxt < s.Frames
}

func (s *Sender) HasGap() bool {
	_, ok := s.Hole()
	return ok
}

// Hole returns the next frame to retransmit.
func (s *Sender) Hole() (uint32, bool) {
	if !s.Gapped || !s.Gaps.Any(s.Una) {
		return 0, false
	}
	return s.Gaps.Missing(s.Una)
}

// Offset returns the position in the flow of frame psn's first byte, with payload bytes per frame.
func (s *Sender) Offset(psn uint32, payload int) int64 {
	return min(int64(psn)*int64(payload), s.Bytes)
}

// Flight returns the number of frames in flight; with apart, without those selectively acknowledged or known
// to be lost.
func (s *Sender) Flight(apart bool) uint32 {
	n := s.Nxt - s.Una
	if apart && s.Gapped {
		n -= min(n, s.Gaps.Away())
	}
	return n
}

// Within returns the window at the present rate (VarWindow scales it by rate ÷ line rate).
func (s *Sender) Within(c *cc.Params) int64 {
	if !c.VarWindow {
		return s.Window
	}
	return max(1, int64(float64(s.Window)*float64(s.Rate.Rate)/float64(s.Line)))
}

// Bound reports whether the window is full at an event that was scheduled age ps before now: with VarWindow
// and DCQCN, timers that expired before the event have changed the rate.
func (s *Sender) Bound(c *cc.Params, payload int, apart bool, now, age int64) bool {
	w, flight := s.Window, int64(s.Nxt-s.Una)*int64(payload)
	if w == 0 || flight < w && !c.VarWindow {
		return false
	}
	if c.VarWindow {
		if c.Kind == cc.DCQCN {
			s.Dcqcn.Tick(c, &s.Rate, now, age)
		}
		w = s.Within(c)
	}
	if s.Nxt >= s.Frames { // the last frame may be short
		flight = s.Offset(s.Nxt, payload) - s.Offset(s.Una, payload)
	}
	if apart {
		flight -= int64(s.Nxt-s.Una-s.Flight(true)) * int64(payload)
	}
	return flight >= w
}
