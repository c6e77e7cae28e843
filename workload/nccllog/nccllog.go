// Package nccllog reads the calls in NCCL's log (NCCL_DEBUG=INFO with subsystem COLL) and the communicators
// of its INIT lines.
//
// A log has no computations, times or groups of calls. opCount rises only with work of the proxy, so calls
// have the order of the lines. Pointers are private to a process: communicators of several processes are the
// same if their commId is or, after a split, if the parent, the number of the split and the color are.
//
// NCCL's Inspector writes JSON objects one after the other, each a call of one rank with the time that it
// took (inspector.go). It leaves out calls below 8 KiB by default, so it is a measurement to compare with
// rather than a job.
//
// What it must not know: files, machines.
//
// Source: NCCL 2.19 to 2.30: src/enqueue.cc (ncclEnqueueCheck), src/init.cc; 2.28 to 2.30:
// plugins/profiler/inspector (README.md, json.cc).
package nccllog

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/workload"
)

// Log is the content of the logs of any number of processes.
type Log struct {
	Version string // of NCCL
	comms   map[commKey]*comm
	calls   []call
	order   []process
}

// process identifies a process and the GPU that it uses.
type process struct{ host, pid, dev string }

type commKey struct {
	host, pid, pointer string
}

// comm is a communicator as one process sees it.
type comm struct {
	id     string // the same in all members
	rank   int32
	ranks  int32
	owner  process
	parent commKey
}

// call is a parsed "opCount …" line.
type call struct {
	by    process
	key   commKey
	fn    coll.Func
	count int64
	typ   coll.DataType
	op    coll.RedOp
	root  int32
	ranks int32
	file  string
	line  int
}

// maxCalls is the largest accepted number of calls.
const maxCalls = 1 << 25

// Read appends the lines of a file to the log; it may be called for several files. It returns a
// *fail.FileError, or an error of in.
func (l *Log) Read(in io.Reader, file string) error {
	if l.comms == nil {
		l.comms = map[commKey]*comm{}
	}
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), 4<<20)
	for n := 1; s.Scan(); n++ {
		head, text, ok := strings.Cut(s.Text(), " NCCL INFO ")
		if !ok {
			continue
		}
		if v, ok := strings.CutPrefix(text, "NCCL version "); ok {
			l.Version, _, _ = strings.Cut(v, "+")
			continue
		}
		by, ok := origin(head)
		if !ok {
			continue
		}
		switch {
		case strings.HasSuffix(text, "Init COMPLETE"):
			l.init(by, text)
		case strings.Contains(text, ": opCount "):
			c, problem := parseCall(by, text)
			if problem != "" {
				return fail.At(file, n, 1, problem,
					"a line of a call is expected: NAME: opCount … count N datatype N op N root N comm 0x…")
			}
			c.file, c.line = file, n
			if len(l.calls) >= maxCalls {
				return fail.At(file, n, 1, fmt.Sprintf("more than %d calls", maxCalls), "")
			}
			l.calls = append(l.calls, c)
			l.seen(by)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func (l *Log) seen(p process) {
	if !slices.Contains(l.order, p) {
		l.order = append(l.order, p)
	}
}

// origin reads host:pid:tid [dev], behind a time stamp where there is one.
func origin(head string) (process, bool) {
	dev, rest := "", head
	if i := strings.LastIndexByte(head, '['); i >= 0 {
		dev = strings.TrimRight(head[i+1:], "] ")
		rest = strings.TrimSpace(head[:i])
	}
	if i := strings.LastIndexByte(rest, ' '); i >= 0 {
		rest = rest[i+1:]
	}
	w := strings.Split(rest, ":")
	if len(w) < 3 {
		return process{}, false
	}
	return process{w[len(w)-3], w[len(w)-2], dev}, true
}

// fields splits a line into alternating names and values ("rank 0 nranks 8"). The first value of a repeated
// name counts.
func fields(text string) map[string]string {
	w := strings.Fields(text)
	out := map[string]string{}
	for i := 0; i+1 < len(w); i++ {
		if _, known := out[w[i]]; !known {
			out[w[i]] = w[i+1]
		}
	}
	return out
}

// init reads the line that ends the creation of a communicator.
func (l *Log) init(by process, text string) {
	f := fields(text)
	rank, err1 := strconv.ParseInt(f["rank"], 10, 32)
	n, err2 := strconv.ParseInt(cmp.Or(f["nranks"], f["nRanks"]), 10, 32)
	pointer := f["comm"]
	if err1 != nil || err2 != nil || pointer == "" || rank < 0 || rank >= n {
		return
	}
	key := commKey{by.host, by.pid, pointer}
	c := &comm{rank: int32(rank), ranks: int32(n), owner: by}
	if id := f["commId"]; id != "" {
		c.id = id
	} else if p := f["parent"]; p != "" {
		c.parent = commKey{by.host, by.pid, p}
		base := p
		if up := l.comms[c.parent]; up != nil {
			base = up.id
		}
		c.id = base + "/" + f["splitCount"] + "/" + f["color"]
	} else {
		c.id = text
	}
	l.comms[key] = c
	l.seen(by)
}

// parseCall parses the line of a call; problem is "" or says what is wrong.
func parseCall(by process, text string) (c call, problem string) {
	name, rest, _ := strings.Cut(text, ": ")
	switch name {
	case "Send":
		c.fn = coll.Send
	case "Recv":
		c.fn = coll.Recv
	default:
		fn, err := coll.ParseFunc(name)
		if err != nil {
			return c, fmt.Sprintf("%s is no operation", name)
		}
		c.fn = fn
	}
	f := fields(rest)
	number := func(key string) int64 {
		n, err := strconv.ParseInt(f[key], 10, 64)
		if (err != nil || n < 0) && problem == "" {
			problem = fmt.Sprintf("%s has %s of %q", name, key, f[key])
		}
		return n
	}
	c.by = by
	c.count = number("count")
	typ, op, root := number("datatype"), number("op"), number("root")
	c.typ, c.op, c.root = coll.DataType(min(typ, 255)), coll.RedOp(min(op, 255)), int32(min(root, 1<<30))
	if problem == "" && !c.typ.Valid() {
		problem = fmt.Sprintf("data type %d is not known", typ)
	}
	if !c.op.Valid() {
		c.op = coll.Sum // an operation that the user made
	}
	c.key = commKey{by.host, by.pid, f["comm"]}
	if c.key.pointer == "" && problem == "" {
		problem = name + " names no communicator"
	}
	if i := strings.Index(rest, "[nranks="); i >= 0 {
		n, _, _ := strings.Cut(rest[i+len("[nranks="):], "]")
		k, _ := strconv.ParseInt(n, 10, 32)
		c.ranks = int32(k)
	}
	return c, problem
}

// SizedCall is a collective with PyTorch's name, type and element counts.
type SizedCall struct {
	Name, Type string
	In, Out    int64 // elements
}

// torchTypes maps element types to PyTorch's names.
var torchTypes = map[coll.DataType]string{coll.Int8: "char", coll.Uint8: "byte", coll.Int32: "int",
	coll.Uint32: "uint32", coll.Int64: "long", coll.Uint64: "uint64",
	coll.Float16: "half", coll.Float32: "float", coll.Float64: "double", coll.BFloat16: "bfloat16",
	coll.Float8e4m3: "float8_e4m3fn", coll.Float8e5m2: "float8_e5m2"}

// Sizes returns the collectives of each rank in order, but for sends and receives.
func (l *Log) Sizes() map[int][]SizedCall {
	rankOf, _, _, err := l.ranks()
	if err != nil {
		return nil
	}
	out := map[int][]SizedCall{}
	for i := range l.calls {
		c := &l.calls[i]
		if c.fn.IsP2P() {
			continue
		}
		s := SizedCall{strings.ReplaceAll(c.fn.TestName(), "_", ""), torchTypes[c.typ], c.count, c.count}
		r := int(rankOf[c.by])
		out[r] = append(out[r], s)
	}
	return out
}

// Calls returns the number of calls.
func (l *Log) Calls() int { return len(l.calls) }

// Program converts the log to a program: the calls of each rank in order, one stream per communicator, and
// one per peer for sends and one for receives, as the lines do not show which calls were launched together.
// Ranks are numbered as in the largest communicator.
func (l *Log) Program() (*workload.Program, []string, error) {
	if len(l.calls) == 0 {
		return nil, nil,
			fmt.Errorf("the log has no calls; NCCL prints them with NCCL_DEBUG=INFO and " +
				"NCCL_DEBUG_SUBSYS=COLL,INIT")
	}
	rankOf, world, notes, err := l.ranks()
	if err != nil {
		return nil, nil, err
	}
	b := builder{l: l, p: &workload.Program{Of: make([]int32, world)}, rankOf: rankOf,
		index: map[string]int32{}, calls: map[string]int32{}}
	b.communicators()
	lists := make([]workload.List, world)
	for r := range lists {
		lists[r].Name = fmt.Sprintf("rank%d", r)
		b.p.Of[r] = int32(r)
	}
	for i := range l.calls {
		c := &l.calls[i]
		s, err := b.step(c)
		if err != nil {
			return nil, nil, err
		}
		r := rankOf[c.by]
		lists[r].Steps = append(lists[r].Steps, s)
	}
	b.p.Lists = lists
	return b.p, append(notes, "a log has no computations: calls follow each other"), nil
}

// ranks finds the rank of each process: that in the largest communicator, or the
// order of the files where there are no INIT lines.
func (l *Log) ranks() (map[process]int32, int, []string, error) {
	out := map[process]int32{}
	largest := map[process]int32{}
	world := int32(0)
	for _, k := range l.keys() {
		c := l.comms[k]
		if c.ranks > largest[c.owner] {
			largest[c.owner], out[c.owner] = c.ranks, c.rank
		}
		world = max(world, c.ranks)
	}
	var notes []string
	if len(l.comms) == 0 {
		for i, p := range l.order {
			out[p] = int32(i)
		}
		world = int32(len(l.order))
		notes = append(notes, "the log has no INIT lines; ranks are in the order of the processes")
	}
	taken := map[int32]process{}
	for _, p := range l.order {
		r, known := out[p]
		if !known {
			return nil, 0, nil,
				fmt.Errorf("process %s:%s device %s has no INIT line; log NCCL_DEBUG_SUBSYS=INIT,COLL",
					p.host, p.pid, p.dev)
		}
		if q, twice := taken[r]; twice {
			return nil, 0, nil,
				fmt.Errorf("processes %s:%s and %s:%s are both rank %d; give the logs of one run", q.host,
					q.pid, p.host, p.pid, r)
		}
		taken[r] = p
	}
	if world > 1<<20 {
		return nil, 0, nil, fmt.Errorf("%d ranks are too many", world)
	}
	return out, int(world), notes, nil
}

// keys returns the keys of all communicators, sorted.
func (l *Log) keys() []commKey {
	var out []commKey
	for k := range l.comms { //lint:sorted the keys are sorted next
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b commKey) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.pid, b.pid),
			cmp.Compare(a.pointer, b.pointer))
	})
	return out
}

type builder struct {
	l      *Log
	p      *workload.Program
	rankOf map[process]int32
	index  map[string]int32 // communicator by identifier
	calls  map[string]int32
}

// communicators collects the members of each communicator that has calls.
func (b *builder) communicators() {
	used := map[string]bool{}
	for i := range b.l.calls {
		if c := b.l.comms[b.l.calls[i].key]; c != nil {
			used[c.id] = true
		}
	}
	for _, k := range b.l.keys() {
		c := b.l.comms[k]
		if !used[c.id] {
			continue
		}
		i, known := b.index[c.id]
		if !known {
			i = int32(len(b.p.Comms))
			b.index[c.id] = i
			members := make([]int32, c.ranks)
			for m := range members {
				members[m] = -1
			}
			b.p.Comms = append(b.p.Comms, workload.Comm{Name: fmt.Sprintf("comm%d", i), Desc: c.id,
				Ranks: members})
		}
		if m := b.p.Comms[i].Ranks; int(c.rank) < len(m) {
			m[c.rank] = b.rankOf[c.owner]
		}
	}
	for i := range b.p.Comms {
		c := &b.p.Comms[i]
		all := len(c.Ranks) == len(b.p.Of)
		for m, r := range c.Ranks {
			all = all && (r == int32(m) || r < 0)
		}
		if all {
			c.Ranks = nil
		}
	}
}

// stream numbers of messages: by communicator, direction and peer.
const (
	messageStreams = 1024
	maxPeers       = 2048
)

func (b *builder) step(c *call) (workload.Step, error) {
	x := workload.Call{Func: c.fn, Type: c.typ, Count: c.count}
	known := b.l.comms[c.key]
	id := "nranks" + strconv.Itoa(int(c.ranks))
	if known != nil {
		id = known.id
	}
	i, have := b.index[id]
	if !have {
		if int(c.ranks) != len(b.p.Of) && c.ranks != 0 {
			return workload.Step{},
				fail.At(c.file, c.line, 1, fmt.Sprintf("the communicator %s of %d ranks has no INIT line",
					c.key.pointer, c.ranks), "log NCCL_DEBUG_SUBSYS=INIT,COLL")
		}
		i = int32(len(b.p.Comms))
		b.index[id] = i
		b.p.Comms = append(b.p.Comms, workload.Comm{Name: fmt.Sprintf("comm%d", i)})
	}
	if slices.Contains(b.p.Comms[i].Ranks, -1) {
		return workload.Step{},
			fail.At(c.file, c.line, 1, fmt.Sprintf("the log lacks members of the communicator %s",
				c.key.pointer), "give the logs of all ranks")
	}
	x.Comm = i
	s := workload.Step{Kind: workload.Issue, Stream: i}
	switch {
	case c.fn == coll.Send || c.fn == coll.Recv:
		x.Peer = c.root
		s.Stream = messageStreams + 2*(c.root%maxPeers)
		if c.fn == coll.Recv {
			s.Stream++
		}
	case c.fn.Rooted():
		x.Root = c.root
	}
	if c.fn.Reduces() {
		x.RedOp = c.op
	}
	key := fmt.Sprintf("%+v", x)
	at, have := b.calls[key]
	if !have {
		at = int32(len(b.p.Calls))
		b.calls[key] = at
		b.p.Calls = append(b.p.Calls, x)
	}
	s.Call = at
	return s, nil
}
