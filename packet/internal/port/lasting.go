package port

import (
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// Pauses that end by themselves. What repeats them goes on as long as the queue behind them is
// long, even if nothing else ever happens: in a deadlock.

// expire lets the pauses of a link end by themselves, and returns how long a window may be: what begins in
// one ends, or is repeated, in a later one.
func (l *Link) expire(b *spec.Buffer) (longest int64) {
	l.Timer = NewPauseTimer(b.Quanta, l.Rate)
	return PauseLasts(b.Quanta, l.Rate) / 2
}

// Back appends what comes to a port before a time beside frames of its cable: credits, and pauses that end or
// are to be asked for again.
func (l *Link) Back(tag uint32, end int64, into []frames.Frame) []frames.Frame {
	into = l.Returns.Take(tag, end, into)
	if l.Timer != nil {
		into = l.Timer.Take(tag, end, into)
	}
	return into
}

// mere reports whether nothing is on the cable but frames that renew a pause of the link back.
func (l *Link) mere(back *Link) bool {
	for i := l.Wire.Head; i != l.Wire.Tail; i++ {
		if f := l.Wire.At(i); f.Flow >= 0 || f.Flags&frames.Pause == 0 || back.Asked>>f.Psn&1 == 0 {
			return false
		}
	}
	return true
}

// ends reports whether one of a link's pauses will end by itself: its neighbour does not repeat it, or what
// it sends may be lost.
func (l *Link) ends(back *Link) bool {
	for c := 1; c < 8; c++ {
		if l.Timer.Paused(c) && (back.Lossy || !back.Timer.Repeats(c)) {
			return true
		}
	}
	return false
}

// Until is when something happens at links whose first frames arrive at due, if all but renewed pauses
// happens at a time: then, or when the first of those is repeated, arrives or would end. Where that goes on
// for long they are passed over.
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

// Renewed is when a pause is repeated, arrives or would end, or anything else arrives.
func Renewed(links []Link, due []int64) int64 {
	t := never
	for i := range links {
		t = min(t, due[i], links[i].Timer.Next())
	}
	return t
}

// Renew passes over pauses that are renewed before a time, and returns how many frames those are.
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
