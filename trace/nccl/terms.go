package nccl

import (
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Term is a component of the timing model in a slice's time. The simulator reports the terms of each slice,
// so that the difference of two traces can be attributed to them.
type Term uint8

// Terms. Waits are caused by a delay elsewhere; the other terms are causes.
const (
	Data     Term = iota // wait: the sender's data has not arrived
	Room                 // wait: the receiver has not freed a slot
	CTS                  // wait: the receiver has not posted a buffer
	GPU                  // wait: the kernel has not reached the step
	Launch               // from the operation's start until its kernel runs
	Overhead             // a piece's fixed cost: barriers, pointers
	Copy                 // bytes at the kernel's own rate in this protocol
	Link                 // additional time because links are shared
	Fence                // stores in flight delay the flag, or the group
	Flag                 // a flag in flight, until a poll sees it
	Proxy                // the proxy thread: post, poll, and earlier jobs
	Queue                // the queue pair sends earlier requests first
	NIC                  // bytes at the port's speed
	Wire                 // propagation, switches and the NICs' own latency
	Flush                // reading back received data
	NumTerms
)

var termName = [NumTerms]string{"data", "room", "cts", "gpu", "launch", "overhead", "copy", "link", "fence",
	"flag", "proxy", "queue", "nic", "wire", "flush"}

// String returns the term's name in traces, without its unit.
func (t Term) String() string { return termName[t] }

// Waits reports whether the term is a wait for another participant.
func (t Term) Waits() bool { return t <= GPU }

// Varies reports whether the term depends on concurrent work: waits, and shares of links and queues. The
// other terms are equal whenever equal bytes take the same path.
func (t Term) Varies() bool { return t.Waits() || t == Link || t == Queue || t == Proxy }

// Terms are a slice's times by term.
type Terms [NumTerms]units.Time

// Sum returns the time that the terms share out, in picoseconds.
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

// Rest adds to a term the part of total that the terms do not explain, if positive.
func (t *Terms) Rest(of Term, total units.Time) { t[of] += max(0, total-t.Sum()) }

// termKey holds the argument names of terms, with the unit: name_us.
var termKey = func() (keys [NumTerms]string) {
	for i, n := range termName {
		keys[i] = n + "_us"
	}
	return keys
}()

// args appends the non-zero terms as arguments, in whole ticks whose sum equals that of the exact times.
func (t *Terms) args(a []trace.Arg) []trace.Arg {
	var sum units.Time
	before := int64(0)
	for i, v := range t {
		if v == 0 {
			continue
		}
		sum += v
		now := int64((sum + trace.Tick/2) / trace.Tick)
		if n := now - before; n > 0 {
			a = append(a, trace.Num(termKey[i], float64(n)/1000))
		}
		before = now
	}
	return a
}

// ParseTerms reads the terms of a slice from its arguments; ok is false if it has none.
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

// argTime converts an argument in microseconds to a time.
func argTime(a *trace.Arg) units.Time {
	if a.Kind == trace.IntArg {
		return units.FromMicros(float64(a.Int))
	}
	return units.FromMicros(a.Num)
}
