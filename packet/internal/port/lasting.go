package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// Pauses that end by themselves. A PAUSE is renewed as long as the queue behind it is long, even if no other
// event ever happens: in a deadlock.

// expire gives the link's pauses a duration (802.1Qbb quanta) and returns the longest window that still
// simulates it exactly: half a pause, since a PAUSE is renewed after half of its duration.
func (l *Link) expire(b *spec.Buffer) (longest int64) {
	l.Timer = NewPauseTimer(b.Quanta, l.Rate)
	return PauseLasts(b.Quanta, l.Rate) / 2
}

// Back appends the events of a port before end that are not frames on its cable: returning credits, ends and
// renewals of pauses.
func (l *Link) Back(tag uint32, end int64, into []frames.Frame) []frames.Frame {
	into = l.Returns.Take(tag, end, into)
	if l.Timer != nil {
		into = l.Timer.Take(tag, end, into)
	}
	return into
}

// onlyRenewals reports whether the cable carries only PAUSE frames that renew a pause of the link back.
func (l *Link) onlyRenewals(back *Link) bool {
	for i := l.Wire.Head; i != l.Wire.Tail; i++ {
		if f := l.Wire.At(i); f.Flow >= 0 || f.Flags&frames.Pause == 0 || back.Asked>>f.Psn&1 == 0 {
			return false
		}
	}
	return true
}

// ends reports whether a pause of the link will run out: the neighbour does not renew it, or its frames may
// be lost.
func (l *Link) ends(back *Link) bool {
	for c := 1; c < 8; c++ {
		if l.Timer.Paused(c) && (back.Lossy || !back.Timer.Repeats(c)) {
			return true
		}
	}
	return false
}

// Until returns the time of the next event of links, given the next event other than renewals (t): a renewal
// if that is earlier. Where renewals would continue for more than 8 pauses they are skipped (Renew).
func Until(links []Link, due []int64, t int64) int64 {
	first, longest := Renewed(links, due), int64(0)
	for i := range links {
		longest = max(longest, links[i].Timer.Lasts())
	}
	if t == never || t-first > 8*longest {
		return t
	}
	return min(t, first)
}

// Renewed returns the time of the first renewal, end of a pause or arrival on any link.
func Renewed(links []Link, due []int64) int64 {
	t := never
	for i := range links {
		t = min(t, due[i], links[i].Timer.Next())
	}
	return t
}

// Renew skips the renewals of pauses before a time and returns the number of PAUSE frames skipped.
func Renew(links []Link, due []int64, at int64) (n int64) {
	for i := range links {
		l := &links[i]
		back := &links[l.Peer]
		k := back.Timer.Renew(at)
		for l.Timer.Extend(at); !l.Wire.Empty() && l.Wire.Front().At < at; l.Wire.Head++ {
			k++
		}
		due[i] = l.Wire.First()
		l.Stats.Pauses += k
		n += k
	}
	return n
}
