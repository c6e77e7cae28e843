package explain

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// cell is an algorithm with a protocol, or nothing.
type cell struct {
	algo  coll.Algorithm
	proto coll.Protocol
	none  bool
}

func (c cell) String() string {
	if c.none {
		return "none"
	}
	return c.algo.String() + " " + c.proto.String()
}

// choices adds the ranges of sizes in which two models choose differently.
func (d *Difference) choices(a, b *comm.Comm, o tuning.Op) error {
	x, err := ranges(a, o)
	if err != nil {
		return err
	}
	y, err := ranges(b, o)
	if err != nil {
		return err
	}
	for i, j := 0, 0; i < len(x) && j < len(y); {
		from, to := max(x[i].from, y[j].from), min(x[i].to, y[j].to)
		if x[i].won != y[j].won && from <= to {
			d.addChoice(a, b, o, ChoiceChange{Op: o.Func.TestName(), From: from, To: to}, x[i].won, y[j].won)
		}
		if x[i].to <= y[j].to {
			i++
		} else {
			j++
		}
	}
	return nil
}

// won is a run of sizes with one winner.
type won struct {
	from, to units.Bytes
	won      cell
}

// ranges lists the winners of a model over all sizes; a communicator of one
// rank, or one that can choose nothing, has one range without a winner.
func ranges(c *comm.Comm, o tuning.Op) ([]won, error) {
	segs, err := c.Model.Segments(o, defaultLimit)
	var none *tuning.NoChoiceError
	if errors.As(err, &none) || errors.Is(err, tuning.ErrOneRank) {
		return []won{{0, defaultLimit, cell{none: true}}}, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]won, len(segs))
	for i, s := range segs {
		out[i] = won{s.From, s.To, cell{algo: s.Algo, proto: s.Proto}}
		if i+1 < len(segs) {
			out[i].to = segs[i+1].From - 1 // between two sizes lies none of this type
		}
	}
	return out, nil
}

// addChoice adds a range, or lengthens the last one by it.
func (d *Difference) addChoice(a, b *comm.Comm, o tuning.Op, c ChoiceChange, x, y cell) {
	c.A, c.B = x.String(), y.String()
	if n := len(d.Choices); n > 0 {
		if last := &d.Choices[n-1]; last.Op == c.Op && last.A == c.A && last.B == c.B && last.To+1 == c.From {
			last.To = c.To
			return
		}
	}
	oa, ob := o, o
	oa.Count, ob.Count = countOf(o, c.From, a.NRanks), countOf(o, c.From, b.NRanks)
	c.Why = whyChoice(a, b, oa, ob, x, y)
	d.Choices = append(d.Choices, c)
}

// countOf is NCCL's count of the smallest operation of at least a size, as the
// model has sizes.
func countOf(o tuning.Op, size units.Bytes, ranks int) int64 {
	one := tuning.Op{Func: o.Func, Count: 1, Type: o.Type}.NBytes(ranks)
	return max(1, int64((size+one-1)/one))
}

// whyChoice says what moved between two sides that choose differently: a
// winner that is off on the other side, or else whose cost there is another.
func whyChoice(a, b *comm.Comm, oa, ob tuning.Op, x, y cell) []string {
	switch {
	case x.none:
		return []string{"A chooses nothing: " + noChoice(a, oa)}
	case y.none:
		return []string{"B chooses nothing: " + noChoice(b, ob)}
	}
	var off, terms []string
	for _, c := range []cell{x, y} {
		o, t := moved(a, b, oa, ob, c)
		off, terms = append(off, o...), append(terms, t.list()...)
	}
	if len(off) > 0 {
		return off
	}
	return terms
}

func noChoice(c *comm.Comm, o tuning.Op) string {
	if _, err := c.Choose(o); err != nil {
		return err.Error()
	}
	return "it has one rank"
}

// terms are what moved in the cost of a cell, and how much of the time each
// side takes for it: latencies, and the bytes over the bandwidth.
type terms struct {
	latency, bandwidth string
	latUs, bytesUs     [2]float64
}

func (t *terms) list() []string {
	var out []string
	for _, s := range []string{t.latency, t.bandwidth} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// felt lists the terms whose change is felt in an operation's time.
func (t *terms) felt() []string {
	total := max(t.latUs[0]+t.bytesUs[0], t.latUs[1]+t.bytesUs[1])
	small := func(x [2]float64) bool { return math.Abs(x[1]-x[0]) < feltShare*total }
	if small(t.latUs) {
		t.latency = ""
	}
	if small(t.bytesUs) {
		t.bandwidth = ""
	}
	return t.list()
}

// feltShare is the part of an operation's time from which a term's change
// counts as a reason for another time.
const feltShare = 0.01

// moved says how a cell differs between two sides: off on one, with the reason
// there, or with other terms of its cost.
func moved(a, b *comm.Comm, oa, ob tuning.Op, c cell) (off []string, t terms) {
	offA, offB := whyOff(a, oa, c), whyOff(b, ob, c)
	switch {
	case offA != "" && offB != "":
		return nil, t
	case offA != "":
		return []string{fmt.Sprintf("%s is off in A: %s", c, offA)}, t
	case offB != "":
		return []string{fmt.Sprintf("%s is off in B: %s", c, offB)}, t
	}
	x, y := a.Model.Terms(oa, c.algo, c.proto), b.Model.Terms(ob, c.algo, c.proto)
	t.latUs = [2]float64{float64(x.LatencyUs), float64(y.LatencyUs)}
	t.bytesUs = [2]float64{bytesUs(a, oa, x), bytesUs(b, ob, y)}
	if x.LatencyUs != y.LatencyUs {
		t.latency = fmt.Sprintf("%s: latency %.4g -> %.4g us%s", c, x.LatencyUs, y.LatencyUs,
			latencyCause(a, b, oa.Func, c.algo))
	}
	if x.GBps != y.GBps {
		t.bandwidth = fmt.Sprintf("%s: %.4g -> %.4g GB/s%s", c, x.GBps, y.GBps, bandwidthCause(a, b, oa, ob,
			c))
	}
	return nil, t
}

func bytesUs(c *comm.Comm, o tuning.Op, t tuning.Terms) float64 {
	if t.GBps <= 0 {
		return 0
	}
	return float64(o.NBytes(c.NRanks)) / float64(t.GBps) / 1e3
}

// whyOff is the first reason why a cell is off, "" where it is on.
func whyOff(c *comm.Comm, o tuning.Op, x cell) string {
	if c.NRanks == 1 {
		return "one rank sends nothing"
	}
	reasons := c.Model.WhyOff(o, x.algo, x.proto)
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0].String()
}

// latencyCause names which of the things that a latency is made of
// (tuning.cc:349-405) differ.
func latencyCause(a, b *comm.Comm, f coll.Func, algo coll.Algorithm) string {
	var out []string
	if a.NRanks != b.NRanks {
		out = append(out, fmt.Sprintf("%d -> %d ranks", a.NRanks, b.NRanks))
	}
	if a.NNodes != b.NNodes {
		out = append(out, fmt.Sprintf("%d -> %d nodes", a.NNodes, b.NNodes))
	}
	if g, h := a.Final[graphOf[algo]], b.Final[graphOf[algo]]; g != nil && h != nil {
		if g.LatencyInter != h.LatencyInter {
			out = append(out, fmt.Sprintf("nets of %g -> %g us", g.LatencyInter, h.LatencyInter))
		}
		if g.TypeIntra != h.TypeIntra {
			out = append(out, fmt.Sprintf("paths %s -> %s within a node", g.TypeIntra, h.TypeIntra))
		}
		if one := f == coll.Reduce || f == coll.Broadcast; one && g.SameChannels != h.SameChannels {
			out = append(out, fmt.Sprintf("sameChannels %d -> %d", g.SameChannels, h.SameChannels))
		}
	}
	if x, y := a.Params.Tuning.NetOverheadNs, b.Params.Tuning.NetOverheadNs; x != y {
		out = append(out, "NCCL_NET_OVERHEAD")
	} else if algo == coll.Ring && a.NNodes > 1 && (a.CPUArch != b.CPUArch || a.CPUVendor != b.CPUVendor) {
		out = append(out, fmt.Sprintf("network steps of %s -> %s CPUs", cpuText(a), cpuText(b)))
	}
	if len(out) == 0 {
		return ""
	}
	return ", for " + strings.Join(out, " and ")
}

// bandwidthCause is the first step at which the derivations of a bandwidth part.
func bandwidthCause(a, b *comm.Comm, oa, ob tuning.Op, c cell) string {
	ch := tuning.Choice{Algo: c.algo, Proto: c.proto}
	x, y := derivation(a, oa, ch), derivation(b, ob, ch)
	for i := range min(len(x), len(y)) {
		if x[i].What != y[i].What {
			return ", " + fromTo(x[i].What, y[i].What)
		}
	}
	return ""
}

// fromTo writes two texts as one, words that they begin and end with once.
func fromTo(x, y string) string {
	p, q := strings.Fields(x), strings.Fields(y)
	head, tail, n := 0, 0, min(len(p), len(q))
	for head < n && p[head] == q[head] {
		head++
	}
	for tail < n-head && p[len(p)-1-tail] == q[len(q)-1-tail] {
		tail++
	}
	words := append(slices.Clone(p[:len(p)-tail]), "->")
	return strings.Join(append(words, q[head:]...), " ")
}

// AddTime adds one size that was timed on both sides, oa and ob as each side
// runs it. Settings that decide come first, then those that only affect transport.
func (d *Difference) AddTime(a, b Side, oa, ob comm.Op, size units.Bytes, x, y Timing) {
	t := TimeChange{Op: oa.Func.TestName(), Size: size, A: x, B: y}
	if x.Us > 0 {
		t.Ratio = y.Us / x.Us
	}
	t.pairs()
	if t.changed() {
		t.Why = d.whyTime(a.Comm, b.Comm, oa, ob, &t)
		if v := t.verdict(); v != "" {
			t.Why = append([]string{v}, t.Why...)
		}
	}
	d.Times = append(d.Times, t)
}

// sameTime is by which part two times of draws differ at most that count as equal.
const sameTime = 0.01

// pairs compares the draws of both sides, each with each.
func (t *TimeChange) pairs() {
	if t.A.Draws == nil && t.B.Draws == nil {
		return
	}
	all, faster, slower := 0, 0, 0
	for _, x := range t.A.times() {
		for _, y := range t.B.times() {
			n := x.For * y.For
			all += n
			switch {
			case y.Us < (1-sameTime)*x.Us:
				faster += n
			case y.Us > (1+sameTime)*x.Us:
				slower += n
			}
		}
	}
	f, s := float64(faster)/float64(max(1, all)), float64(slower)/float64(max(1, all))
	t.Faster, t.Slower = &f, &s
}

// times are those of all draws; the one time where there are none.
func (t *Timing) times() []DrawTime {
	if t.Draws == nil {
		return []DrawTime{{t.Us, 1}}
	}
	return t.Draws
}

// undecided reports whether neither side is faster in most pairs of draws.
func (t *TimeChange) undecided() bool {
	return t.Faster != nil && max(*t.Faster, *t.Slower) <= 0.5
}

// verdict says what pairs of draws come to; empty without draws.
func (t *TimeChange) verdict() string {
	if t.Faster == nil {
		return ""
	}
	band := func(x *Timing) string {
		all := x.times()
		return fmt.Sprintf("%.2f to %.2f us", all[0].Us, all[len(all)-1].Us)
	}
	out := fmt.Sprintf("medians of draws of hashed routes; A %s, B %s: ", band(&t.A), band(&t.B))
	pairs := fmt.Sprintf("of pairs of draws B is slower in %.0f %%, faster in %.0f %%", 100**t.Slower,
		100**t.Faster)
	if *t.Slower > 0 && *t.Faster > 0 {
		pairs += "; with NCCL_IB_QPS_PER_CONNECTION=8 and NCCL_IB_SPLIT_DATA_ON_QPS=1 on both sides draws " +
			"differ less"
	}
	switch {
	case t.undecided():
		return out + "neither is faster in most: " + pairs
	case *t.Slower > *t.Faster:
		return out + "B is slower in most: " + pairs
	case t.B.Channels > t.A.Channels && t.A.Channels > 0:
		return out +
			fmt.Sprintf("B, whose %d channels for %d have more queue pairs to spread, is faster in most: ",
				t.B.Channels, t.A.Channels) + pairs
	}
	return out + "B is faster in most: " + pairs
}

func (d *Difference) whyTime(a, b *comm.Comm, oa, ob comm.Op, t *TimeChange) []string {
	var out []string
	if !oa.Func.IsP2P() && oa.Count > 0 && ob.Count > 0 {
		p, q := tuningOp(oa), tuningOp(ob)
		x, y := chosen(a, p), chosen(b, q)
		if x != y {
			out = whyChoice(a, b, p, q, x, y)
		} else if !x.none {
			_, t := moved(a, b, p, q, x)
			out = t.felt()
		}
	}
	if t.A.Channels != t.B.Channels {
		out = append(out, fmt.Sprintf("%d -> %s", t.A.Channels, plural(t.B.Channels, "channel")))
	}
	if why := linkWhy(&t.A, &t.B); why != "" {
		out = append(out, why)
	}
	if len(out) == 0 {
		out = d.given()
	}
	return out
}

// given names what was given differently, for times that no decision explains:
// what only times depend on, or else all of it.
func (d *Difference) given() []string {
	var timing, all []string
	for _, i := range d.Inputs {
		text := fmt.Sprintf("because of %s: %s -> %s", i.What, i.A, i.B)
		all = append(all, text)
		if i.Timing {
			timing = append(timing, text)
		}
	}
	if len(timing) > 0 {
		return timing
	}
	return all
}

// linkShift is by what part of itself the time that the fullest link needs must
// change before it counts as a reason.
const linkShift = 0.02

// linkShare is the part of an operation's time from which its fullest link
// counts as what bounds it.
const linkShare = 0.2

// linkWhy compares what bounds both sides on the wires.
func linkWhy(x, y *Timing) string {
	if x.LinkUs < linkShare*x.Us && y.LinkUs < linkShare*y.Us || x.LinkUs <= 0 || y.LinkUs <= 0 {
		return ""
	}
	if r := y.LinkUs / x.LinkUs; r > 1-linkShift && r < 1+linkShift {
		return ""
	}
	return fmt.Sprintf("the fullest link, %s, needs %.4g us for its bytes; in B %s needs %.4g us", x.Link,
		x.LinkUs, y.Link, y.LinkUs)
}

func tuningOp(o comm.Op) tuning.Op {
	return tuning.Op{Func: o.Func, Count: o.Count, Type: o.Type, RedOp: o.RedOp}
}

func chosen(c *comm.Comm, o tuning.Op) cell {
	ch, err := c.Choose(o)
	if err != nil {
		return cell{none: true}
	}
	return cell{algo: ch.Algo, proto: ch.Proto}
}
