package compare

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

// slice is a span of a trace, however the file spells it.
type slice struct {
	pid, tid   int64
	cat, name  string
	opcode     string // of work requests, behind a blank
	start, end units.Time
	bytes      int64
	line       int
	terms      nccltrace.Terms // what it consists of, where that is told
	told       bool
	peer       int64
	rank       int64  // of an operation that says it, else -1
	thread     string // where it belongs, if its track does not say
}

func (s *slice) dur() units.Time { return s.end - s.start }

// pairs joins begins with their ends.
type pairs struct {
	async map[string][]slice
	sync  map[[2]int64][]slice
	ops   map[int64]slice // by process: the proxy operation whose steps are told
}

func newPairs() *pairs {
	return &pairs{async: map[string][]slice{}, sync: map[[2]int64][]slice{}, ops: map[int64]slice{}}
}

func begin(e *chrome.Event) slice {
	s := slice{pid: e.PID, tid: e.TID, cat: e.Cat, name: e.Name, start: e.TS, end: e.TS + e.Dur, line: e.Line, rank: -1}
	if a, ok := e.Arg("Peer"); ok {
		s.peer = a.Int
	}
	if a, ok := e.Arg("Rank"); ok && (s.cat == "COLL" || s.cat == "P2P") {
		s.rank = a.Int
	}
	s.terms, s.told = nccltrace.ParseTerms(e.Args)
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

// slice returns the span that e completes, if it does.
func (p *pairs) slice(e *chrome.Event) (slice, bool) {
	track := [2]int64{e.PID, e.TID}
	switch e.Phase {
	case 'X':
		return begin(e), true
	case 'B':
		p.sync[track] = append(p.sync[track], begin(e))
	case 'E':
		if open := p.sync[track]; len(open) > 0 {
			s := open[len(open)-1]
			p.sync[track] = open[:len(open)-1]
			s.end = e.TS
			return s, true
		}
	case 'b':
		k, s := asyncKey(e), begin(e)
		p.place(e, &s)
		p.async[k] = append(p.async[k], s)
	case 'e':
		k := asyncKey(e)
		if open := p.async[k]; len(open) > 0 {
			s := open[len(open)-1]
			p.async[k] = open[:len(open)-1]
			s.end = e.TS
			return s, true
		}
	}
	return slice{}, false
}

func asyncKey(e *chrome.Event) string {
	return strconv.FormatInt(e.PID, 10) + "\x00" + e.Cat + "\x00" + e.ID
}

// place says where a slice belongs that lies on no thread of its own: NCCL's
// example profiler (ext-profiler/example/print_event.cc) puts all of a process
// on thread 1, tells channels by argument, and a proxy operation's steps between
// its begin and its end.
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
