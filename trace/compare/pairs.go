package compare

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// slice is a span of a trace, in whatever form the file has it.
type slice struct {
	pid, tid   int64
	cat, name  string
	opcode     string // of work requests, preceded by a blank
	start, end units.Time
	bytes      int64
	line       int
	terms      nccl.Terms // its terms, if known
	reported   bool
	peer       int64
	rank       int64  // of an operation with a rank argument, else -1
	thread     string // its thread, if its track does not say
}

func (s *slice) dur() units.Time { return s.end - s.start }

// pairs joins begin events with their end events.
type pairs struct {
	async map[string][]slice
	sync  map[[2]int64][]slice
	ops   map[int64]slice // by process: the proxy operation whose steps follow
	kept  *trace.Budget
}

func newPairs(kept *trace.Budget) *pairs {
	return &pairs{async: map[string][]slice{}, sync: map[[2]int64][]slice{}, ops: map[int64]slice{},
		kept: kept}
}

// size returns the approximate memory of a slice in bytes; names are mostly shared.
func (s *slice) size() int64 {
	const fixed, shared = 320, 256 // a name of up to 256 bytes is stored once
	n := int64(fixed)
	for _, text := range [...]string{s.cat, s.name, s.opcode} {
		if len(text) > shared {
			n += int64(len(text))
		}
	}
	return n
}

// push stores a begin until its end comes.
func push[K comparable](p *pairs, open map[K][]slice, k K, s slice) error {
	open[k] = append(open[k], s)
	return p.kept.Keep(s.size()+64, s.line)
}

// pop removes and returns the last open begin, which ends now.
func pop[K comparable](p *pairs, open map[K][]slice, k K, end units.Time) (slice, bool, error) {
	list := open[k]
	if len(list) == 0 {
		return slice{}, false, nil
	}
	s := list[len(list)-1]
	open[k] = list[:len(list)-1]
	p.kept.Free(s.size())
	s.end = end
	return s, true, nil
}

func begin(e *chrome.Event) slice {
	s := slice{pid: e.PID, tid: e.TID, cat: e.Cat, name: e.Name, start: e.TS, end: e.TS + e.Dur, line: e.Line,
		rank: -1}
	if a, ok := e.Arg("Peer"); ok {
		s.peer = a.Int
	}
	if a, ok := e.Arg("Rank"); ok && (s.cat == "COLL" || s.cat == "P2P") {
		s.rank = a.Int
	}
	s.terms, s.reported = nccl.ParseTerms(e.Args)
	if op, ok := e.Arg("opcode"); ok {
		s.opcode = " " + op.Str
	}
	for _, key := range [...]string{"bytes", "size", "transSize"} {
		if a, ok := e.Arg(key); ok {
			s.bytes = a.Int
			break
		}
	}
	return s
}

// slice returns the span that e completes; ok is false if it completes none.
func (p *pairs) slice(e *chrome.Event) (slice, bool, error) {
	track := [2]int64{e.PID, e.TID}
	switch e.Phase {
	case 'X':
		return begin(e), true, nil
	case 'B':
		return slice{}, false, push(p, p.sync, track, begin(e))
	case 'E':
		return pop(p, p.sync, track, e.TS)
	case 'b':
		s := begin(e)
		p.place(e, &s)
		return slice{}, false, push(p, p.async, asyncKey(e), s)
	case 'e':
		return pop(p, p.async, asyncKey(e), e.TS)
	}
	return slice{}, false, nil
}

func asyncKey(e *chrome.Event) string {
	return strconv.FormatInt(e.PID, 10) + "\x00" + e.Cat + "\x00" + e.ID
}

// place sets the thread of a slice in files whose tracks do not show it: NCCL's example profiler
// (ext-profiler/example/print_event.cc) puts all slices of a process on thread 1, identifies channels by an
// argument, and puts a proxy operation's steps between its begin and its end.
func (p *pairs) place(e *chrome.Event, s *slice) {
	ch, _ := e.Arg("Channel")
	switch s.cat {
	case "COLL", "GROUP":
		s.thread = "collectives"
	case "P2P":
		s.thread = "P2P"
	case "GROUP_API", "COLL_API", "P2P_API", "KERNEL_LAUNCH":
		s.thread = "API"
	case "GPU":
		s.thread = fmt.Sprintf("comm 0 kernel ch %02d", ch.Int)
	case "PROXY":
		for _, dir := range [...]string{"Send", "Recv"} {
			if strings.HasSuffix(s.name, dir) {
				s.thread = fmt.Sprintf("ch %02d %s", ch.Int, strings.ToLower(dir))
				p.ops[s.pid] = *s
			}
		}
	case "NET":
		if _, own := e.Arg("Peer"); !own {
			op := p.ops[s.pid]
			s.thread, s.peer = op.thread, op.peer
		}
	}
}
