package ncclog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/envelope"
	"github.com/simccl/simccl/workload/inputs"
)

// maxLogLine is the number of bytes of a line that are examined. NCCL's own buffer holds 2,048 bytes
// (debug.cc:ncclDebugLog); prefixes of launchers precede it.
const maxLogLine = 1 << 16

// Log is the INFO lines of one job's processes, from one file or several (one per rank or host).
type Log struct {
	Version  string          // of NCCL, "2.28.9", or RCCL, "rccl-2.30.4"; "" where no line names it
	RCCL     bool            // AMD's library wrote it
	CUDA     string          // toolkit it was built with, "13.0"
	Settings []Setting       // "NAME set by environment to VALUE", the first of each name
	GPUs     []string        // model names of nccl-tests' header, by rank
	Network  string          // plugin in use, "IB" or "Socket"
	Dump     string          // value of NCCL_TOPO_DUMP_FILE
	Comms    []*Communicator // in order of their first line
	// Torn is the number of lines damaged by concurrent output; they are not compared.
	Torn int
	// Pieces lists lines without a prefix: rests of interrupted lines, and output of other programs.
	Pieces []Text
	// Removed lists the envelopes that were removed from the text (envelope.Text).
	Removed []string
	// Unplaced is the number of choices whose communicator's creation is not logged.
	Unplaced int
}

// Printed reports whether any rank printed its system.
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

// Setting is an environment variable as NCCL logs it.
type Setting struct{ Name, Value string }

// Communicator is a communicator with the lines of its logged ranks.
type Communicator struct {
	ID     string // commId, or parent, splitCount and color of a split
	NRanks int
	Split  bool
	Ranks  []*Rank // in order of appearance
}

// Rank is one rank of a communicator with its lines.
type Rank struct {
	Rank, CUDADev, NVMLDev        int
	BusID                         int64 // as NCCL prints it, hexadecimal 17000
	NNodes, LocalRanks, LocalRank int   // 0 where no line says so
	Multicast                     Known
	// GDR reports whether NETs support GPUDirect RDMA, by number and by name, from the lines "GPU Direct RDMA
	// Enabled …".
	GDR    map[string]bool
	Nets   []string       // names of NETs in the order in which they are filled in
	Names  map[int]string // names of NETs by number, where a line says it
	Lines  []Text
	Ops    []Choice
	Routes []Route
	Torn   bool // a line of its thread was written over

	process string // host:pid
	pointer string // of the communicator in its process
	unknown bool   // nothing names its number
}

// Known is a fact that a log may not mention.
type Known uint8

// Values of Known.
const (
	Unknown Known = iota
	No
	Yes
)

// Text is a line with its position.
type Text struct {
	Text string
	File string
	Line int
	Torn bool // damaged: the line contains another one, or part of one
}

// Choice is a logged choice: "AllReduce: 1024 Bytes -> Algo RING …".
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
}

var (
	prefix    = Pattern(`([^\s:\[\]<>()|"']+:\d+:\d+) \[(-?\d+)\] (?:\S+:\d+ )?NCCL INFO ?`)
	version   = Pattern(`^NCCL version (\d+\.\d+\.\d+)(?:\+cuda(\d[\d.]*))?`)
	setBy     = Pattern(`^(NCCL_[A-Z0-9_]+|RCCL_[A-Z0-9_]+) set by environment to (.*)$`)
	initStart = Pattern(
		`^(?:\[Rank \d+\] )?(ncclComm\w+) comm (0x[0-9a-f]+) rank (\d+) nranks (\d+) cudaDev (-?\d+)(?: nvmlDev (-?\d+))? busId ([0-9a-f]+)(.*?)(?:- )?Init START`)
	commID    = Pattern(`commId (0x[0-9a-f]+)`)
	splitOf   = Pattern(`parent (0x[0-9a-f]+)(?: (?:splitCount|childCount) (-?\d+))? color (-?\d+)`)
	placeLine = Pattern(
		`^comm 0x[0-9a-f]+ rank \d+ nRanks \d+ nNodes (\d+) localRanks (\d+) localRank (\d+) MNNVL (\d+)`)
	filledNet = Pattern(`Filled (.+) in topo with pciPath=`)
	gdrLine   = Pattern(`GPU Direct RDMA (Enabled|Disabled)(?: \(.*\))? for HCA (\d+) '([^']*)'`)
	// Of a pair of GPU and NET; "Disabled" says that they are far from each other
	// (paths.cc:ncclTopoCheckGdr).
	pairLine  = Pattern(`^GPU Direct RDMA Enabled for GPU [0-9a-f]+ / HCA ([0-9a-f]+) \(`)
	usingLine = Pattern(`^NET/\w+ : Using ((?:\[\d+\]\S+ ?)+)`)
	usedNet   = Pattern(`\[(\d+)\]([^\s:]+)`)
	// NVLS channels exist where multicast is supported and enabled.
	channelsLine = Pattern(`^\d+ coll channels, (?:\d+ collnet channels, )?(\d+) nvls channels`)
	castLine     = Pattern(`^NVLS multicast support is (not )?available`)
	callLine     = Pattern(
		`^(\w+): opCount [0-9a-f]+ sendbuff \S+ (?:recvbuff \S+ )?(?:acc \S+ )?count (\d+) datatype (\d+) op (\d+) root (-?\d+) comm (0x[0-9a-f]+)`)
	opLine = Pattern(
		`^(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}`)
	// Before 2.24.3, and without the operation before 2.23.4.
	oldOpLine = Pattern(`^(?:(\w+): )?(\d+) Bytes -> Algo (\d+) proto (\d+) time -?[\d.]+$`)
	connLine  = Pattern(
		`^Channel (\d+)/(\d+) : (\d+)\[\w+\] -> (\d+)\[\w+\] (\[send\] |\[receive\] )?via (\w+)(?:/[^/ ]+/(\d+))?(\S*)(.*)$`)
	usesGPU = Pattern(`^#\s+Rank\s+(\d+) Group\s+\d+ Pid\s+\d+ on\s+\S+ device\s+\d+ \[[^\]]*\] (.+?)\s*$`)
)

// Pattern returns a function that compiles an expression when it is first called: a process that
// reads no log has none to compile.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// ErrNoLog is the error of input without any line of NCCL.
var ErrNoLog = errors.New("no NCCL INFO line")

// Read parses logs in the given order, each in any envelope (package envelope). Names appear in positions.
// The error names the first file that has no line of NCCL's or is a log of RCCL (*AMDError).
func Read(files ...File) (*Log, error) { return read(false, files) }

func read(rccl bool, files []File) (*Log, error) {
	r := &reader{log: &Log{RCCL: rccl}, threads: map[string]*Rank{}, procs: map[string]*Rank{},
		groups: map[string]*group{}, orphans: map[string]*orphan{}}
	texts := make([]envelope.Text, len(files))
	for i, f := range files {
		t, err := envelope.Open(f.Data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		texts[i] = t
	}
	r.known = writers(texts)
	for i, f := range files {
		if err := r.file(f.Name, texts[i]); err != nil {
			return nil, err
		}
	}
	r.adopt()
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

// chosen is a Choice whose communicator is not yet known.
type chosen struct {
	process, pointer string
	Choice
}

type reader struct {
	log     *Log
	threads map[string]*Rank  // host:pid:tid → the rank whose init it logs
	procs   map[string]*Rank  // host:pid:pointer → rank
	groups  map[string]*group // by thread
	orphans map[string]*orphan
	order   []string       // threads of orphans
	known   map[string]int // threads → lines that begin with them
	chosen  []chosen
	name    string
	line    int
	torn    bool // the line of the file holds more than one
}

func (r *reader) file(name string, t envelope.Text) error {
	r.name = name
	seen := false
	for _, what := range t.Removed {
		if !slices.Contains(r.log.Removed, what) {
			r.log.Removed = append(r.log.Removed, what)
		}
	}
	var other *AMDError
	for _, l := range t.Lines {
		r.line = l.Number
		text := l.Text[:min(len(l.Text), maxLogLine)]
		if r.log.RCCL {
			r.versionOf(text)
		} else if other == nil {
			if m := inputs.AMDLine(text); m != "" {
				other = &AMDError{File: name, Line: l.Number, Text: m}
			}
		}
		seen = r.take(text) || seen
	}
	if other != nil && r.log.CUDA == "" { // a log of NCCL may name RCCL
		return other
	}
	if !seen && !r.bare(t) {
		return fmt.Errorf("%s: %w; run with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING",
			name, ErrNoLog)
	}
	return nil
}

// maxCalls bounds the calls of a group that are kept: send/recv calls have no
// line of a choice and stay.
const maxCalls = 1 << 12

// take reads one line and reports whether it is NCCL's.
func (r *reader) take(line string) bool {
	if m := usesGPU().FindStringSubmatch(line); m != nil {
		r.model(m[1], m[2])
		return false
	}
	var at [][]int
	if strings.Contains(line, "NCCL INFO") {
		at = prefix().FindAllStringSubmatchIndex(line, -1)
	}
	if at == nil {
		if text := strings.TrimSpace(line); text != "" && len(r.log.Pieces) < maxPieces &&
			len(text) < maxPiece {
			r.log.Pieces = append(r.log.Pieces, r.at(text))
		}
		if strings.Contains(line, "NCCL INFO") {
			r.log.Torn++
		}
		// Up to 2.21.5 the version has no prefix (init.cc:476 of v2.21.5).
		if _, v, ok := strings.Cut(line, "NCCL version "); ok {
			r.global("NCCL version " + v)
		}
		return false
	}
	// Of several prefixes in one line the last one's text is whole; what is
	// before it was overwritten.
	for _, m := range at[:len(at)-1] {
		r.log.Torn++
		if rank := r.threads[r.writer(line[m[2]:m[3]])]; rank != nil {
			rank.Torn = true
		}
	}
	m := at[len(at)-1]
	thread := r.writer(line[m[2]:m[3]])
	text := line[m[1]:]
	glued := thread != line[m[2]:m[3]]
	if glued && len(at) == 1 {
		r.log.Torn++
	}
	if r.torn = len(at) > 1 || glued; r.torn {
		if rank := r.threads[thread]; rank != nil {
			rank.Torn = true
		}
	}
	r.text(thread, text)
	r.torn = false
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
	if r.log.RCCL {
		text = asNCCL(text)
	}
	switch {
	case r.global(text):
	case strings.Contains(text, "Init START"):
		if m := initStart().FindStringSubmatch(text); m != nil {
			r.begin(thread, m)
		}
	case strings.Contains(text, "Init COMPLETE"):
		r.orphan(thread, text)
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
			g.calls = append(g.calls, call{fn: m[1], pointer: m[6], dtype: num(m[3]), redop: num(m[4]),
				root: num(m[5])})
		}
	default:
		if rank := r.threads[thread]; rank != nil {
			r.ofRank(rank, text)
		} else {
			r.orphan(thread, text)
		}
	}
}

// global parses lines about the whole job, and reports whether the line was one.
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

// setting stores a variable. NCCL ends the line of a number with a full stop (param.cc:ncclLoadParam), but
// not that of a text.
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

// begin opens the rank that a thread initialises.
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
	rank := newRank(thread)
	rank.Rank, rank.CUDADev, rank.NVMLDev, rank.pointer = num(m[3]), num(m[5]), num(m[6]), m[2]
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

func newRank(thread string) *Rank {
	return &Rank{process: process(thread), GDR: map[string]bool{}, Names: map[int]string{}}
}

func (r *reader) at(text string) Text {
	return Text{Text: text, File: r.name, Line: r.line, Torn: r.torn}
}

// nets parses lines about NETs: names, GPUDirect RDMA. It reports whether the line was one.
func (k *Rank) nets(text string) bool {
	switch {
	case strings.HasPrefix(text, "NET/"):
		if m := usingLine().FindStringSubmatch(text); m != nil {
			for _, d := range usedNet().FindAllStringSubmatch(m[1], -1) {
				k.Names[num(d[1])] = d[2]
			}
			return true
		}
		m := gdrLine().FindStringSubmatch(text)
		if m == nil {
			return false
		}
		k.Names[num(m[2])] = m[3]
		k.GDR[m[2]], k.GDR[m[3]] = m[1] == "Enabled", m[1] == "Enabled"
		return true
	case strings.HasPrefix(text, "GPU Direct RDMA"):
		if m := pairLine().FindStringSubmatch(text); m != nil {
			if id, err := strconv.ParseUint(m[1], 16, 64); err == nil {
				k.GDR[strconv.FormatUint(id&(1<<56-1), 10)] = true
			}
		}
		return true
	}
	return false
}

// ofRank parses a line about one rank.
func (r *reader) ofRank(rank *Rank, text string) {
	if m := placeLine().FindStringSubmatch(text); m != nil {
		rank.NNodes, rank.LocalRanks, rank.LocalRank = num(m[1]), num(m[2]), num(m[3])
		return
	}
	if m := filledNet().FindStringSubmatch(text); m != nil {
		if !slices.Contains(rank.Nets, m[1]) {
			rank.Nets = append(rank.Nets, m[1])
		}
		return
	}
	if rank.nets(text) {
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
		route := Route{Text: r.at(text), Channel: num(m[1]), Conn: num(m[2]), Src: int32(num(m[3])),
			Dst:     int32(num(m[4])),
			Receive: m[5] == "[receive] ", Via: m[6], Net: -1, GDR: strings.Contains(m[8], "GDRDMA")}
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

// rendered matches the lines that OfRank generates, and those of older releases' system prints.
var rendered = Pattern(
	`^(=== System : |={42}$|(CPU|GPU|PCI|NIC|NET|DEV)/[0-9a-f]+-|CPU/[0-9A-F]+ \(|(GPU|NET)/[0-9A-F]+ :| *\+ \w+\[|Pattern \d| ?\d+ : (GPU|NET)/|Tree \d+ :|NVLS (Head|Trees|tuning)|` +
		`Channel \d+/\d+ :( +\d+)+(\.\.\.)?$|Ring \d+ :|Trees \[|P2P Chunksize|ncclP2pSchedule|  Algorithm   \||  Protocol    \|| Max NThreads \||` +
		` *\w+ \| *\d+\.\d/|threadThresholds|\d+ coll channels)`)

// place assigns each choice to its communicator by the pointer in the call. Only rank 0 logs choices
// (enqueue.cc:topoGetAlgoInfo), so a choice without a call belongs to the only rank 0 of its process.
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

// Host returns the name of the host that the rank's lines begin with.
func (r *Rank) Host() string {
	host, _, _ := strings.Cut(r.process, ":")
	return host
}

// process returns host:pid of a thread named host:pid:tid.
func process(thread string) string { return thread[:strings.LastIndexByte(thread, ':')] }

func num(s string) int { n, _ := strconv.Atoi(s); return n }

func num64(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
