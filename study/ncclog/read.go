package ncclog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxLogLine bounds a line of a log: NCCL's own buffer holds 2,048 bytes
// (debug.cc:ncclDebugLog), prefixes of launchers come before it.
const maxLogLine = 1 << 20

// Log is what the INFO lines of one job's processes say: of one file or of
// several, one a rank or a host.
type Log struct {
	Version  string          // of NCCL, "2.28.9"; "" where no line names it
	CUDA     string          // toolkit it was built with, "13.0"
	Settings []Setting       // "NAME set by environment to VALUE", the first of each name
	GPUs     []string        // model names of nccl-tests' header, by rank
	Network  string          // plugin in use, "IB" or "Socket"
	Dump     string          // value of NCCL_TOPO_DUMP_FILE
	Comms    []*Communicator // in order of their first line
	// Torn counts lines that processes wrote over each other: what is left of
	// them is not compared.
	Torn int
	// Unplaced counts choices of a communicator whose making is not logged.
	Unplaced int
}

// Printed reports whether some rank printed its system.
func (l *Log) Printed() bool {
	for _, c := range l.Comms {
		for _, r := range c.Ranks {
			for _, t := range r.Lines {
				if strings.HasPrefix(t.Text, "=== System") {
					return true
				}
			}
		}
	}
	return false
}

// Setting is an environment variable as NCCL reports it.
type Setting struct{ Name, Value string }

// Communicator is one by the lines of those of its ranks that are logged.
type Communicator struct {
	ID     string // commId, or parent, splitCount and color of a split
	NRanks int
	Split  bool
	Ranks  []*Rank // in order of appearance
}

// Rank is one rank of a communicator.
type Rank struct {
	Rank, CUDADev, NVMLDev        int
	BusID                         int64 // as NCCL prints it, hexadecimal 17000
	NNodes, LocalRanks, LocalRank int   // 0 where no line says so
	MNNVL                         bool
	Multicast                     Known
	GDR                           map[string]bool // NET name → GPU Direct RDMA
	Nets                          []string        // names of NETs by number
	Lines                         []Text
	Ops                           []Choice
	Routes                        []Route
	Torn                          bool // a line of its thread was written over

	process string // host:pid
	pointer string // of the communicator in its process
}

// Known is a fact that a log may not mention.
type Known uint8

// Values of Known.
const (
	Unknown Known = iota
	No
	Yes
)

// Text is a line with its place.
type Text struct {
	Text string
	File string
	Line int
}

// Choice is what NCCL logged of an operation: "AllReduce: 1024 Bytes -> Algo RING …".
type Choice struct {
	Text
	Func  string
	Bytes int64
	// Of the call before it, where the subsystem COLL is logged: its datatype and
	// reduction in NCCL's numbering and its root. Grouped calls have several
	// candidates and none is taken.
	Called            bool
	Type, RedOp, Root int
	Grouped           bool
}

// Route is a connection that NCCL logged: "Channel 00/0 : 0[0] -> 1[1] via …".
type Route struct {
	Text
	Channel, Conn int
	Src, Dst      int32
	Receive       bool
	Via           string // P2P, SHM, NET
	Net           int    // index after NET/NAME/, -1 where there is none
	GDR           bool
	Shared        bool
}

var (
	prefix    = Pattern(`(\S+:\d+:\d+) \[(-?\d+)\] (?:\S+:\d+ )?NCCL INFO `)
	version   = Pattern(`^NCCL version (\d+\.\d+\.\d+)(?:\+cuda(\S+))?`)
	setBy     = Pattern(`^(NCCL_[A-Z0-9_]+) set by environment to (.*)$`)
	initStart = Pattern(`^(?:\[Rank \d+\] )?(ncclComm\w+) comm (0x[0-9a-f]+) rank (\d+) nranks (\d+) cudaDev (-?\d+)(?: nvmlDev (-?\d+))? busId ([0-9a-f]+)(.*?)(?:- )?Init START`)
	commID    = Pattern(`commId (0x[0-9a-f]+)`)
	splitOf   = Pattern(`parent (0x[0-9a-f]+)(?: (?:splitCount|childCount) (-?\d+))? color (-?\d+)`)
	placeLine = Pattern(`^comm 0x[0-9a-f]+ rank \d+ nRanks \d+ nNodes (\d+) localRanks (\d+) localRank (\d+) MNNVL (\d+)`)
	filledNet = Pattern(`Filled (.+) in topo with pciPath=`)
	gdrLine   = Pattern(`GPU Direct RDMA (Enabled|Disabled)(?: \(.*\))? for HCA \d+ '([^']*)'`)
	// NVLS channels exist where multicast is supported and enabled.
	channelsLine = Pattern(`^\d+ coll channels, (?:\d+ collnet channels, )?(\d+) nvls channels`)
	castLine     = Pattern(`^NVLS multicast support is (not )?available`)
	callLine     = Pattern(`^(\w+): opCount [0-9a-f]+ sendbuff \S+ (?:recvbuff \S+ )?(?:acc \S+ )?count (\d+) datatype (\d+) op (\d+) root (-?\d+) comm (0x[0-9a-f]+)`)
	opLine       = Pattern(`^(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}`)
	// Before 2.24.3, and without the operation before 2.23.4.
	oldOpLine = Pattern(`^(?:(\w+): )?(\d+) Bytes -> Algo (\d+) proto (\d+) time -?[\d.]+$`)
	connLine  = Pattern(`^Channel (\d+)/(\d+) : (\d+)\[\w+\] -> (\d+)\[\w+\] (\[send\] |\[receive\] )?via (\w+)(?:/[^/ ]+/(\d+))?(\S*)(.*)$`)
	usesGPU   = Pattern(`^#\s+Rank\s+(\d+) Group\s+\d+ Pid\s+\d+ on\s+\S+ device\s+\d+ \[[^\]]*\] (.+?)\s*$`)
)

// Pattern returns a function that compiles an expression when it is first called: a process that
// reads no log has none to compile.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// ErrNoLog marks input without a line of NCCL's.
var ErrNoLog = errors.New("no NCCL INFO line")

// Read parses logs in the given order; a file may be gzip. Names are used in
// positions. The error names the file where one holds no line of NCCL's.
func Read(files ...File) (*Log, error) {
	r := &reader{log: &Log{}, threads: map[string]*Rank{}, procs: map[string]*Rank{}, groups: map[string]*group{}}
	for _, f := range files {
		if err := r.file(f); err != nil {
			return nil, err
		}
	}
	r.place()
	return r.log, nil
}

// File is a log to read.
type File struct {
	Name string
	Data []byte
}

// call is an API call that waits for the line of its choice.
type call struct {
	fn, pointer        string
	dtype, redop, root int
}

// chosen is an Op before its communicator is known.
type chosen struct {
	process, pointer string
	Choice
}

type reader struct {
	log     *Log
	threads map[string]*Rank  // host:pid:tid → the rank whose init it logs
	procs   map[string]*Rank  // host:pid:pointer → rank
	groups  map[string]*group // by thread
	chosen  []chosen
	name    string
	line    int
}

func (r *reader) file(f File) error {
	data := f.Data
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if data, err = io.ReadAll(io.LimitReader(z, maxLog+1)); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if len(data) > maxLog {
			return fmt.Errorf("%s: more than %d MiB of log; keep the lines of the first initialisation and some operations", f.Name, maxLog>>20)
		}
	}
	r.name, r.line = f.Name, 0
	seen := false
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, maxLogLine)
	for sc.Scan() {
		r.line++
		seen = r.take(sc.Text()) || seen
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", f.Name, r.line+1, err)
	}
	if !seen {
		return fmt.Errorf("%s: %w; run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING", f.Name, ErrNoLog)
	}
	return nil
}

// maxCalls bounds the calls of a group that are kept: send/recv calls have no
// line of a choice and stay.
const maxCalls = 1 << 12

// maxLog bounds a decompressed log.
const maxLog = 1 << 30

// take reads one line and reports whether it is NCCL's.
func (r *reader) take(line string) bool {
	if m := usesGPU().FindStringSubmatch(line); m != nil {
		r.model(m[1], m[2])
		return false
	}
	at := prefix().FindAllStringSubmatchIndex(line, -1)
	if at == nil {
		// Up to 2.21.5 the version has no prefix (init.cc:476 of v2.21.5).
		return version().MatchString(line) && r.global(line)
	}
	// Of several prefixes in one line the last one's text is whole; what is
	// before it was overwritten.
	for _, m := range at[:len(at)-1] {
		r.log.Torn++
		if rank := r.threads[line[m[2]:m[3]]]; rank != nil {
			rank.Torn = true
		}
	}
	m := at[len(at)-1]
	thread := line[m[2]:m[3]]
	text := line[m[1]:]
	if len(at) > 1 {
		if rank := r.threads[thread]; rank != nil {
			rank.Torn = true
		}
	}
	r.text(thread, text)
	return true
}

func (r *reader) model(rank, name string) {
	n, err := strconv.Atoi(rank)
	if err != nil || n > 1<<20 {
		return
	}
	for len(r.log.GPUs) <= n {
		r.log.GPUs = append(r.log.GPUs, "")
	}
	r.log.GPUs[n] = name
}

// text reads the text of an INFO line of a thread.
func (r *reader) text(thread, text string) {
	switch {
	case r.global(text):
	case strings.Contains(text, "Init START"):
		if m := initStart().FindStringSubmatch(text); m != nil {
			r.begin(thread, m)
		}
	case opLine().MatchString(text):
		r.choice(thread, opLine().FindStringSubmatch(text), text)
	case oldOpLine().MatchString(text):
		r.choice(thread, oldOpLine().FindStringSubmatch(text), text)
	case callLine().MatchString(text):
		m := callLine().FindStringSubmatch(text)
		g := r.groups[thread]
		if g == nil || g.ended {
			g = &group{}
			r.groups[thread] = g
		}
		if len(g.calls) < maxCalls {
			g.calls = append(g.calls, call{fn: m[1], pointer: m[6], dtype: num(m[3]), redop: num(m[4]), root: num(m[5])})
		}
	default:
		if rank := r.threads[thread]; rank != nil {
			r.ofRank(rank, text)
		}
	}
}

// global reads lines that hold for the whole job.
func (r *reader) global(text string) bool {
	if m := version().FindStringSubmatch(text); m != nil {
		if r.log.Version == "" {
			r.log.Version, r.log.CUDA = m[1], m[2]
		}
		return true
	}
	if name, ok := strings.CutPrefix(text, "Using network "); ok {
		if r.log.Network == "" {
			r.log.Network = strings.TrimSpace(name)
		}
		return true
	}
	if m := setBy().FindStringSubmatch(text); m != nil {
		r.setting(m[1], m[2])
		return true
	}
	return false
}

// setting keeps a variable. NCCL ends the line of a number with a full stop
// (param.cc:ncclLoadParam), that of a text with nothing.
func (r *reader) setting(name, value string) {
	if v := strings.TrimSuffix(value, "."); v != value {
		if _, err := strconv.ParseInt(v, 0, 64); err == nil {
			value = v
		}
	}
	if name == "NCCL_TOPO_DUMP_FILE" {
		r.log.Dump = value
	}
	for _, s := range r.log.Settings {
		if s.Name == name {
			return
		}
	}
	r.log.Settings = append(r.log.Settings, Setting{name, value})
}

// begin opens the rank that a thread makes.
func (r *reader) begin(thread string, m []string) {
	id, rest := "", m[8]
	split := false
	if c := commID().FindStringSubmatch(rest); c != nil {
		id, split = c[1], splitOf().MatchString(rest) // a split has both before 2.23.4 (2.22.3 init.cc:1401)
	} else if s := splitOf().FindStringSubmatch(rest); s != nil {
		split = true
		parent := s[1]
		if p := r.procs[process(thread)+s[1]]; p != nil {
			parent = r.commOf(p).ID
		}
		id = parent + "/" + s[2] + "/" + s[3]
	}
	n := num(m[4])
	var c *Communicator
	for _, have := range r.log.Comms {
		if have.ID == id && have.NRanks == n {
			c = have
		}
	}
	rank := &Rank{Rank: num(m[3]), CUDADev: num(m[5]), NVMLDev: num(m[6]), process: process(thread), pointer: m[2], GDR: map[string]bool{}}
	rank.BusID, _ = strconv.ParseInt(m[7], 16, 64)
	if c == nil || c.has(rank.Rank) {
		c = &Communicator{ID: id, NRanks: n, Split: split}
		r.log.Comms = append(r.log.Comms, c)
	}
	c.Ranks = append(c.Ranks, rank)
	r.threads[thread] = rank
	r.procs[rank.process+rank.pointer] = rank
}

func (c *Communicator) has(rank int) bool {
	for _, r := range c.Ranks {
		if r.Rank == rank {
			return true
		}
	}
	return false
}

func (r *reader) commOf(rank *Rank) *Communicator {
	for _, c := range r.log.Comms {
		for _, x := range c.Ranks {
			if x == rank {
				return c
			}
		}
	}
	return &Communicator{}
}

func (r *reader) at(text string) Text { return Text{Text: text, File: r.name, Line: r.line} }

// ofRank reads a line about one rank.
func (r *reader) ofRank(rank *Rank, text string) {
	if m := placeLine().FindStringSubmatch(text); m != nil {
		rank.NNodes, rank.LocalRanks, rank.LocalRank, rank.MNNVL = num(m[1]), num(m[2]), num(m[3]), m[4] == "1"
		return
	}
	if m := filledNet().FindStringSubmatch(text); m != nil {
		if !slices.Contains(rank.Nets, m[1]) {
			rank.Nets = append(rank.Nets, m[1])
		}
		return
	}
	if m := gdrLine().FindStringSubmatch(text); m != nil {
		rank.GDR[m[2]] = m[1] == "Enabled"
		return
	}
	if m := castLine().FindStringSubmatch(text); m != nil {
		rank.Multicast = Yes
		if m[1] != "" {
			rank.Multicast = No
		}
		return
	}
	if m := connLine().FindStringSubmatch(text); m != nil {
		route := Route{Text: r.at(text), Channel: num(m[1]), Conn: num(m[2]), Src: int32(num(m[3])), Dst: int32(num(m[4])),
			Receive: m[5] == "[receive] ", Via: m[6], Net: -1, GDR: strings.Contains(m[8], "GDRDMA"), Shared: strings.Contains(m[8], "Shared")}
		if m[7] != "" {
			route.Net = num(m[7])
		}
		rank.Routes = append(rank.Routes, route)
		return
	}
	if m := channelsLine().FindStringSubmatch(text); m != nil && rank.Multicast == Unknown {
		rank.Multicast = Yes
		if m[1] == "0" {
			rank.Multicast = No
		}
	}
	if rendered().MatchString(text) {
		rank.Lines = append(rank.Lines, r.at(text))
	}
}

// rendered are the lines that OfRank prints.
var rendered = Pattern(`^(=== System : |={42}$|(CPU|GPU|PCI|NIC|NET|DEV)/[0-9a-f]+-|(GPU|NET)/[0-9A-F]+ :| *\+ \w+\[|Pattern \d| ?\d+ : (GPU|NET)/|Tree \d+ :|NVLS (Head|Trees|tuning)|` +
	`Channel \d+/\d+ :( +\d+)+(\.\.\.)?$|Ring \d+ :|Trees \[|P2P Chunksize|ncclP2pSchedule|  Algorithm   \||  Protocol    \|| Max NThreads \||` +
	` *\w+ \| *\d+\.\d/|threadThresholds|\d+ coll channels)`)

// choice keeps the line of an operation with the call that led to it. Calls of
// a group come first, those of all ranks of the process, then the choices of rank
// 0, as many as it has calls, in NCCL's order.
func (r *reader) choice(thread string, m []string, text string) {
	op := chosen{process: process(thread), Choice: Choice{Text: r.at(text), Func: m[1], Bytes: num64(m[2])}}
	g := r.groups[thread]
	if g != nil {
		g.ended = true
		if op.Func == "" && len(g.calls) > 0 {
			op.Func = g.calls[0].fn // before 2.23.4 the call alone names it
		}
		op.pointer, op.Grouped = g.of(r, op.process, op.Func)
		if c := g.only(op.pointer); c != nil && !op.Grouped && c.fn == op.Func {
			op.Called, op.Type, op.RedOp, op.Root = true, c.dtype, c.redop, c.root
		}
	}
	r.chosen = append(r.chosen, op)
}

// group is the calls of a thread before their choices.
type group struct {
	calls []call
	ended bool // a choice followed: the next call begins another group
}

// of names the communicator of rank 0 among the calls of a function, and whether
// it has several calls.
func (g *group) of(r *reader, process, fn string) (pointer string, several bool) {
	for _, c := range g.calls {
		if rank := r.procs[process+c.pointer]; c.fn == fn && (rank == nil || rank.Rank == 0) {
			pointer = c.pointer
			break
		}
	}
	n := 0
	for _, c := range g.calls {
		if c.pointer == pointer {
			n++
		}
	}
	return pointer, n > 1
}

// only is the first call of a communicator.
func (g *group) only(pointer string) *call {
	for i := range g.calls {
		if g.calls[i].pointer == pointer {
			return &g.calls[i]
		}
	}
	return nil
}

// place gives each choice to its communicator, by the pointer that the call
// names. Only rank 0 logs choices (enqueue.cc:topoGetAlgoInfo), so that one
// without a call belongs to the only rank 0 of its process.
func (r *reader) place() {
	first := map[string][]*Rank{}
	for _, c := range r.log.Comms {
		for _, rank := range c.Ranks {
			if rank.Rank == 0 {
				first[rank.process] = append(first[rank.process], rank)
			}
		}
	}
	for _, op := range r.chosen {
		rank := r.procs[op.process+op.pointer]
		if rank == nil && op.pointer == "" && len(first[op.process]) == 1 {
			rank = first[op.process][0]
		}
		if rank == nil {
			r.log.Unplaced++
			continue
		}
		rank.Ops = append(rank.Ops, op.Choice)
	}
}

// Host is the name of the host that the rank's lines begin with.
func (r *Rank) Host() string {
	host, _, _ := strings.Cut(r.process, ":")
	return host
}

// process is host:pid of host:pid:tid.
func process(thread string) string { return thread[:strings.LastIndexByte(thread, ':')] }

func num(s string) int { n, _ := strconv.Atoi(s); return n }

func num64(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
