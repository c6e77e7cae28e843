package compare

import (
	"strconv"

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
}

func (s *slice) dur() units.Time { return s.end - s.start }

// pairs joins begins with their ends.
type pairs struct {
	async map[string][]slice
	sync  map[[2]int64][]slice
}

func newPairs() *pairs {
	return &pairs{async: map[string][]slice{}, sync: map[[2]int64][]slice{}}
}

func begin(e *chrome.Event) slice {
	s := slice{pid: e.PID, tid: e.TID, cat: e.Cat, name: e.Name, start: e.TS, end: e.TS + e.Dur, line: e.Line}
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
		k := asyncKey(e)
		p.async[k] = append(p.async[k], begin(e))
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
