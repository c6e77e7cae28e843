package ncclog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/envelope"
)

const (
	maxPieces = 1 << 14 // lines without a prefix that are kept
	maxPiece  = 2048    // bytes of one
)

// writers counts, for each prefix host:pid:tid, the lines that begin with it.
func writers(texts []envelope.Text) map[string]int {
	known := map[string]int{}
	for _, t := range texts {
		for _, l := range t.Lines {
			if !strings.Contains(l.Text, "NCCL INFO") {
				continue
			}
			for _, m := range prefix().FindAllStringSubmatch(l.Text[:min(len(l.Text), maxLogLine)], -1) {
				known[m[1]]++
			}
		}
	}
	return known
}

// maxGlued is the largest number of lines of a name that counts as a damaged form of another thread's name.
const maxGlued = 3

// writer returns the thread that wrote a line: "nodenode0:7:8" is node0:7:8 after a piece of another line,
// "e0:7:8" its rest.
func (r *reader) writer(thread string) string {
	n := r.known[thread]
	if n > maxGlued {
		return thread
	}
	best := thread
	for other, m := range r.known { //lint:sorted the most frequent, then the least name counts
		if m <= n || other == thread {
			continue
		}
		if (strings.HasSuffix(thread, other) || strings.HasSuffix(other, thread)) &&
			(best == thread || r.known[best] < m || r.known[best] == m && other < best) {
			best = other
		}
	}
	return best
}

// orphan is a thread without a line Init START; its lines are kept until its rank is known.
type orphan struct {
	thread string
	lines  []Text
	nranks int
}

// maxOrphan bounds the lines that are kept of a thread.
const maxOrphan = 1 << 16

func (r *reader) orphan(thread, text string) {
	o := r.orphans[thread]
	if o == nil {
		if r.threads[thread] != nil {
			return
		}
		o = &orphan{thread: thread}
		r.orphans[thread] = o
		r.order = append(r.order, thread)
	}
	if len(o.lines) < maxOrphan {
		o.lines = append(o.lines, r.at(text))
	}
}

var (
	complete = Pattern(
		`^(?:\[Rank \d+\] )?ncclComm\w+ comm (0x[0-9a-f]+) rank (\d+) nranks (\d+) cudaDev (-?\d+)(?: nvmlDev (-?\d+))? busId ([0-9a-f]+) .*Init COMPLETE`)
	commRank = Pattern(`^comm (0x[0-9a-f]+) rank (\d+) nRanks (\d+) nNodes `)
	ownRank  = Pattern(
		`^(?:Ring \d+ : -?\d+ -> (\d+) -> -?\d+|Trees \[0\] -?\d+/-?\d+/-?\d+->(\d+)->-?\d+.*|Tree \d+ : -?\d+ -> (\d+) -> .*)$`)
	ringOf  = Pattern(`^Channel \d+/\d+ :((?: +\d+)+)$`)
	tableOf = Pattern(`^(?:  Algorithm   \||threadThresholds )`)
)

// adopt creates ranks for threads whose initialisation is not logged, from their other lines: Init COMPLETE,
// "comm … rank …", rings and trees.
func (r *reader) adopt() {
	for _, thread := range r.order {
		o := r.orphans[thread]
		k := o.of()
		if k == nil {
			continue
		}
		c := r.home(o, k)
		if c == nil {
			continue
		}
		c.Ranks = append(c.Ranks, k)
		c.NRanks = max(c.NRanks, o.nranks)
		r.threads[thread], r.procs[k.process+k.pointer] = k, k
		for _, l := range o.lines {
			r.name, r.line, r.torn = l.File, l.Line, l.Torn
			k.Torn = k.Torn || l.Torn
			r.ofRank(k, l.Text)
		}
		r.torn = false
	}
}

// of infers the rank of a thread; nil if no line is one that ranks write. Rank is -1 if no line contains its
// number.
func (o *orphan) of() *Rank {
	k, made := newRank(o.thread), false
	k.Rank = -1
	for _, l := range o.lines {
		made = made || rendered().MatchString(l.Text)
		switch {
		case complete().MatchString(l.Text):
			m := complete().FindStringSubmatch(l.Text)
			k.pointer, k.Rank, o.nranks, k.CUDADev, k.NVMLDev = m[1], num(m[2]), num(m[3]), num(m[4]),
				num(m[5])
			k.BusID, _ = strconv.ParseInt(m[6], 16, 64)
		case commRank().MatchString(l.Text):
			m := commRank().FindStringSubmatch(l.Text)
			k.pointer, k.Rank, o.nranks, made = m[1], num(m[2]), num(m[3]), true
		case k.Rank < 0 && ownRank().MatchString(l.Text):
			m := ownRank().FindStringSubmatch(l.Text)
			k.Rank = num(m[1] + m[2] + m[3])
		case o.nranks == 0 && ringOf().MatchString(l.Text) && !strings.HasSuffix(l.Text, "..."):
			o.nranks = len(strings.Fields(ringOf().FindStringSubmatch(l.Text)[1]))
			if k.Rank < 0 {
				k.Rank = 0 // rank 0 alone prints rings, and the table
			}
		case k.Rank < 0 && tableOf().MatchString(l.Text):
			k.Rank = 0
		}
	}
	if !made {
		return nil
	}
	return k
}

// home returns the communicator of an adopted rank; nil for a further thread of a process whose ranks are
// known.
func (r *reader) home(o *orphan, k *Rank) *Communicator {
	for _, c := range r.log.Comms {
		if k.Rank >= 0 && k.Rank < c.NRanks && !c.has(k.Rank) && (o.nranks == 0 || o.nranks == c.NRanks) {
			return c
		}
	}
	busy := slices.ContainsFunc(r.log.Comms, func(c *Communicator) bool {
		return slices.ContainsFunc(c.Ranks, func(x *Rank) bool { return x.process == k.process })
	})
	if busy {
		return nil
	}
	if k.Rank < 0 {
		k.unknown, k.Rank = true, 0
	}
	c := &Communicator{ID: "of " + o.thread, NRanks: o.nranks}
	r.log.Comms = append(r.log.Comms, c)
	return c
}

// bare parses text of NCCL without prefixes: an excerpt of a system print, or a log of one rank without its
// first columns. Lines of several ranks could not be attributed.
func (r *reader) bare(t envelope.Text) bool {
	const thread = "excerpt:0:0"
	begins := func(rest string) bool {
		return plainLine().MatchString(rest) || rendered().MatchString(strings.TrimLeft(rest, " \t"))
	}
	var lines []envelope.Line
	starts, indent := 0, 0
	for _, l := range t.Lines {
		text, at, ok := envelope.Payload(l.Text[:min(len(l.Text), maxLogLine)], begins)
		if !ok {
			continue
		}
		trimmed := strings.TrimLeft(text, " \t")
		if systemStart().MatchString(trimmed) {
			indent = len(text) - len(trimmed)
		}
		text = text[min(indent, len(text)-len(trimmed)):]
		if strings.Contains(text, "Init START") {
			starts++
		}
		lines = append(lines, envelope.Line{Number: l.Number, Column: at, Text: text})
	}
	if starts > 1 {
		return false
	}
	for _, l := range lines {
		r.line = l.Number
		r.text(thread, l.Text)
	}
	return len(lines) > 0
}

// plainLine matches lines, other than rendered, that have information about a rank or a job.
var plainLine = Pattern(
	`^(?:NCCL version \d|NCCL_[A-Z0-9_]+ set by environment to |Using network |(?:\[Rank \d+\] )?ncclComm\w+ comm 0x|comm 0x[0-9a-f]+ rank |` +
		`NET/\w+ : (?:Using|GPU Direct)|GPU Direct RDMA |NVLS multicast support is |ncclTopoPopulateNics : Filled |\w+: \d+ Bytes -> Algo )`)

var systemStart = Pattern(`^(?:=== System|CPU/)`)

// Unknown reports whether no line names the rank's number: Rank is 0 then.
func (r *Rank) Unknown() bool { return r.unknown }
