package nccl

import (
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Term is a part of the timing model that the time of a slice can be made of.
// The simulator says of each slice which terms it consists of, so that a
// difference of two traces can be led back to them.
type Term uint8

// Terms. Waits follow from something else that was late; the others are causes.
const (
	Data     Term = iota // wait: the sender's data is not there
	Room                 // wait: the receiver has not freed a slot
	CTS                  // wait: the receiver has not offered a buffer
	GPU                  // wait: the kernel has not come to the step
	Launch               // from the operation's start until its kernel runs
	Overhead             // a piece's own cost: barriers, pointers
	Copy                 // bytes at the kernel's own rate in this protocol
	Link                 // what it takes longer where links are shared
	Fence                // stores in flight hold the flag, or the group, up
	Flag                 // a flag in flight until a poll sees it
	Proxy                // the proxy thread: post, poll, and the jobs before
	Queue                // the queue pair sends what was posted before
	NIC                  // bytes at the port's speed
	Wire                 // propagation, switches and the NICs' own latency
	Flush                // received data is read back
	NumTerms
)

var termName = [NumTerms]string{"data", "room", "cts", "gpu", "launch", "overhead", "copy", "link", "fence",
	"flag", "proxy", "queue", "nic", "wire", "flush"}

// String returns the term's name in traces, without its unit.
func (t Term) String() string { return termName[t] }

// Waits reports whether the term is a wait for another participant.
func (t Term) Waits() bool { return t <= GPU }

// Varies reports whether the term depends on concurrent work: waits, and
// shares of links and queues. The others are the same whenever equal bytes go
// in the same way.
func (t Term) Varies() bool { return t.Waits() || t == Link || t == Queue || t == Proxy }

// Terms are a slice's times by term.
type Terms [NumTerms]units.Time

// Sum adds them up.
func (t *Terms) Sum() (sum units.Time) {
	for _, v := range t {
		sum += v
	}
	return sum
}

// Add adds another slice's terms.
func (t *Terms) Add(o *Terms) {
	for i := range t {
		t[i] += o[i]
	}
}

// Rest gives a term the rest of total, if anything is.
func (t *Terms) Rest(of Term, total units.Time) { t[of] += max(0, total-t.Sum()) }

// termKey are the arguments' names, units in them.
var termKey = func() (keys [NumTerms]string) {
	for i, n := range termName {
		keys[i] = n + "_us"
	}
	return keys
}()

// args appends the terms that are not zero, in whole ticks whose sum is that of
// the exact times.
func (t *Terms) args(a []trace.Arg) []trace.Arg {
	var sum units.Time
	before := int64(0)
	for i, v := range t {
		if v == 0 {
			continue
		}
		sum += v
		now := ticks(sum)
		if n := now - before; n > 0 {
			a = append(a, trace.Num(termKey[i], float64(n)/1000))
		}
		before = now
	}
	return a
}

func ticks(t units.Time) int64 { return int64((t + trace.Tick/2) / trace.Tick) }

// ParseTerms reads the terms of a slice from its arguments; ok is false where
// it has none.
func ParseTerms(args []trace.Arg) (t Terms, ok bool) {
	for i := range args {
		a := &args[i]
		name, us := strings.CutSuffix(a.Key, "_us")
		if !us {
			continue
		}
		for j, n := range termName {
			if n != name {
				continue
			}
			t[j], ok = t[j]+argTime(a), true
		}
	}
	return t, ok
}

// argTime is the time of an argument in microseconds.
func argTime(a *trace.Arg) units.Time {
	if a.Kind == trace.IntArg {
		return units.FromMicros(float64(a.Int))
	}
	return units.FromMicros(a.Num)
}
