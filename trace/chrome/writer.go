package chrome

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/internal/pack"
	"github.com/simccl/simccl/trace/perfetto"
)

// ClockSync is the offset by which one rank's clock is ahead of the trace's reference clock, and the
// uncertainty of that.
type ClockSync struct {
	Rank          int   `json:"rank"`
	OffsetNs      int64 `json:"offset_ns"`
	UncertaintyNs int64 `json:"uncertainty_ns"`
}

// Meta is a trace's description of itself, under "otherData".
type Meta struct {
	Source    string // sim, real or merged
	Version   string // of simccl
	NCCLRules string // 2.28.9
	Topo      string // sha256:… of the topology file
	Fabric    string // sha256:… of the fabric file; empty: ideal network
	Seed      int64
	Env       []trace.Arg // NCCL_* settings in force, in order
	Clock     string      // sim, CLOCK_MONOTONIC_RAW
	ClockSync []ClockSync
	GPUSync   []ClockSync // each rank's GPU against its host
	// EpochNs is the trace's time zero by the writing host's clock; 0: not known.
	EpochNs int64
	// Part says that other processes write the rest of the run's trace.
	Part *Part
}

// Part is the rank of a file and the number of ranks' files.
type Part struct {
	Rank int `json:"rank"`
	Of   int `json:"of"`
}

// Options configure a Writer.
type Options struct {
	Meta Meta
	// MaxEvents bounds the file; 0: no bound. Slices of operations and kernels are written beyond it; omitted
	// events are counted by category in otherData.left_out.
	MaxEvents int64
	// NCCLStyle writes the same events as NCCL's example profiler plugin: slices as asynchronous pairs on
	// thread 1 of their process, nothing else; but as valid JSON.
	NCCLStyle bool
	// BatchBytes is the size of a batch for sorting; memory is about four times that. 0: 8 MiB.
	BatchBytes int
	// Spool opens the storage for events beyond one batch, until Close; nil: memory.
	Spool func() (Spool, error)
	// Cancelled, if set, is polled while the file is written, by several goroutines; its error ends the
	// writing, and no file appears.
	Cancelled func() error
}

const defaultBatch = 8 << 20

// Writer is a trace.Sink that writes a Chrome trace. It is not safe for
// concurrent use.
type Writer struct {
	out      io.Writer
	opt      Options
	tracks   []track
	places   pack.Places // of tracks
	known    map[[2]int64]trace.TrackID
	tables   *pack.Tables
	packing  packing          // compression of the file
	proto    *perfetto.Writer // for Perfetto's format; nil: JSON
	cur      *pack.Batch
	spare    chan *pack.Batch // batches ready for use
	full     chan *pack.Batch // batches to spill
	spilled  chan error
	spool    Spool
	sizes    []int64
	events   int64
	pairs    int64 // asynchronous ids assigned (NCCLStyle)
	left     map[string]int64
	overflow int64
	counters map[counterKey]*counter
	near     [1 << 13]*counter // cache by track and length of the name
	end      int64
	err      error
	closed   bool
	finish   func(error) error
	// written and total are the numbers of events in the file and of those that Close will write, for
	// Progress.
	written, total atomic.Int64
}

type track struct {
	trace.Track
	slice          []byte // the text of a slice on the track up to its time
	place, process []byte // ranges of it
}

type counterKey struct {
	track trace.TrackID
	name  string
}

type counter struct {
	counterKey
	key   string // key of its first argument
	zero  bool
	shape uint32 // shape of an event with one number under that key; 0: none yet
}

// kept lists the categories that are written beyond MaxEvents: they are few and give the other events their
// context.
var kept = []string{"COLL", "COLL_API", "GROUP", "GROUP_API", "P2P", "P2P_API", "KERNEL_LAUNCH", "GPU",
	"critical"}

// New returns a Writer that writes the whole file to out when it is closed.
func New(out io.Writer, opt Options) *Writer {
	if opt.BatchBytes <= 0 {
		opt.BatchBytes = defaultBatch
	}
	return &Writer{out: out, opt: opt, known: make(map[[2]int64]trace.TrackID),
		tables: pack.New(appendString), cur: &pack.Batch{},
		left: make(map[string]int64), counters: make(map[counterKey]*counter)}
}

// File is a file under construction: Finish gives it its name, or discards it if err is not nil.
type File interface {
	io.Writer
	Finish(err error) error
}

// To returns a Writer to a file that was created for path, in Perfetto's own format if path ends in .pftrace,
// compressed if it ends in .gz or .zst. Close or Abort finishes the file.
func To(file File, path string, opt Options) *Writer {
	w := New(file, opt)
	w.packing = packingOf(path)
	if perfetto.Named(path) {
		w.proto = perfetto.NewWriter(w.tables)
	}
	w.err = CheckPath(path, opt)
	w.finish = func(err error) error {
		if err = file.Finish(err); err != nil {
			return fmt.Errorf("write trace %s: %w", path, err)
		}
		return nil
	}
	return w
}

// CheckPath returns an error if a trace with these options cannot be written to a file of that name.
func CheckPath(path string, opt Options) error {
	if opt.NCCLStyle && perfetto.Named(path) {
		return errors.New("the layout of NCCL's profiler plugin is one of Chrome's JSON; write to .json or " +
			".json.gz, or leave the style out")
	}
	if !writesZstd && packingOf(path) == zstandard {
		return errors.New("the web page writes no zstd; write to .json.gz")
	}
	return nil
}

// Track registers a lane.
func (w *Writer) Track(t trace.Track) trace.TrackID {
	k := [2]int64{t.Process, t.Thread}
	if id, ok := w.known[k]; ok {
		return id
	}
	id := trace.TrackID(len(w.tracks))
	w.tracks = append(w.tracks, newTrack(t))
	w.known[k] = id
	return id
}

func newTrack(t trace.Track) track {
	const before, after = separator + `{"ph":"X",`, `,"ts":`
	b := strconv.AppendInt(append(make([]byte, 0, 64), before+`"pid":`...), t.Process, 10)
	process := len(b)
	b = strconv.AppendInt(append(b, `,"tid":`...), t.Thread, 10)
	place := len(b)
	return track{t, append(b, after...), b[len(before):place], b[len(before):process]}
}

// Order changes the position of a process in the viewer.
func (w *Writer) Order(process, sort int64) {
	for i := range w.tracks {
		if t := &w.tracks[i]; t.Process == process {
			t.ProcessSort = sort
		}
	}
}

// Emit packs one event into the current batch. Events beyond MaxEvents are counted and dropped; an event
// before time zero is an error, which Close returns.
func (w *Writer) Emit(e *trace.Event) {
	if w.err != nil || w.closed {
		return
	}
	from, to := trace.Span(e.Start, e.Start+e.Dur)
	if e.Phase != trace.Slice {
		to = from
	}
	if from < 0 {
		w.err = fmt.Errorf("event %q starts %d ns before the trace", e.Name, -from)
		return
	}
	if w.opt.MaxEvents > 0 && w.events >= w.opt.MaxEvents && !slices.Contains(kept, e.Cat) {
		w.drop(e)
		return
	}
	w.end = max(w.end, to)
	if e.Phase == trace.Counter && len(e.Args) > 0 {
		if c := w.count(e); !w.opt.NCCLStyle && w.countNumber(c, e, from) {
			return
		}
	}
	if w.opt.NCCLStyle {
		if e.Phase == trace.Slice {
			w.putPair(e, from, to)
		}
		return
	}
	w.add(e, from, to)
}

// add packs an event for the file's format.
func (w *Writer) add(e *trace.Event, from, to int64) {
	if w.proto != nil {
		w.putProto(e, from, to)
	} else {
		w.put(e, from, to)
	}
	if w.cur.Size() >= w.opt.BatchBytes {
		w.swap()
	}
}

func (w *Writer) drop(e *trace.Event) {
	cat := e.Cat
	if e.Phase == trace.Counter {
		cat = "counter"
	}
	w.left[cat]++
}

// count records whether a counter is zero, so that Close can end it at zero even if its last events were
// omitted. It returns the counter's record.
func (w *Writer) count(e *trace.Event) *counter {
	slot := &w.near[(uint32(e.Track)*2+uint32(len(e.Name))>>1&1)%uint32(len(w.near))]
	c := *slot
	if c == nil || c.track != e.Track || c.name != e.Name {
		k := counterKey{e.Track, e.Name}
		if c = w.counters[k]; c == nil {
			c = &counter{counterKey: k, key: e.Args[0].Key}
			w.counters[k] = c
		}
		*slot = c
	}
	a := &e.Args[0]
	c.zero = a.Kind == trace.FloatArg && a.Num == 0 || a.Kind == trace.IntArg && a.Int == 0
	return c
}

// countNumber packs a counter's event whose only argument is a number, with the shape of the counter's
// earlier events; false if it is of another form.
func (w *Writer) countNumber(c *counter, e *trace.Event, from int64) bool {
	if len(e.Args) != 1 || e.Cat != "" || e.Tint != trace.Plain || e.Args[0].Kind != trace.FloatArg ||
		e.Args[0].Key != c.key || w.proto != nil {
		return false
	}
	if c.shape == 0 {
		c.shape = w.tables.Number(e)
	}
	if c.shape == 0 {
		return false // the tables are full
	}
	off := len(w.cur.Data)
	w.cur.Data = pack.AppendCounter(w.cur.Data, c.shape, e.Args[0].Num)
	w.keep(pack.Key{TS: from, Dur: 0}, e.Track, off)
	return true
}

// keep adds the event whose bytes begin at off to the batch.
func (w *Writer) keep(k pack.Key, t trace.TrackID, off int) {
	w.cur.Add(k, t, off)
	w.events++
	if w.cur.Size() >= w.opt.BatchBytes {
		w.swap()
	}
}

func (w *Writer) put(e *trace.Event, from, to int64) {
	off := len(w.cur.Data)
	w.cur.Data = w.tables.Pack(w.cur.Data, byte(e.Phase), uint64(e.ID), e)
	w.cur.Add(pack.Key{TS: from, Dur: to - from}, e.Track, off)
	w.events++
}

// putProto packs an event for Perfetto's format: a slice as a begin and an end, each number of a counter on a
// track of its own.
func (w *Writer) putProto(e *trace.Event, from, to int64) {
	switch e.Phase {
	case trace.Slice:
		w.put(e, from, to)
		off := len(w.cur.Data)
		w.cur.Data = append(w.cur.Data, pack.SliceEnd)
		w.cur.Add(pack.Key{TS: to, Dur: math.MaxInt64}, e.Track, off) // before slices that begin then
	case trace.Counter:
		one := *e
		for i := range e.Args {
			if e.Args[i].Kind == trace.StringArg {
				continue
			}
			one.Args = e.Args[i : i+1]
			id := w.proto.Counter(w.tracks[e.Track].Process, e.Name, e.Args[i].Key)
			off := len(w.cur.Data)
			w.cur.Data = w.tables.Pack(w.cur.Data, pack.CounterValue, id, &one)
			w.cur.Add(pack.Key{TS: from}, e.Track, off)
			w.events++
		}
	default:
		w.put(e, from, to)
	}
}

// putPair packs a slice as a begin and an end with their own id.
func (w *Writer) putPair(e *trace.Event, from, to int64) {
	id := w.pairs
	w.pairs++
	off := len(w.cur.Data)
	w.cur.Data = w.tables.Pack(w.cur.Data, pack.PairBegin, uint64(id), e)
	w.cur.Add(pack.Key{TS: from, Dur: to - from}, e.Track, off)
	off = len(w.cur.Data)
	w.cur.Data = w.tables.Pack(w.cur.Data, pack.PairEnd, uint64(id), &trace.Event{Cat: e.Cat, Name: e.Name})
	w.cur.Add(pack.Key{TS: to}, e.Track, off)
	w.events += 2
	if w.cur.Size() >= w.opt.BatchBytes {
		w.swap()
	}
}

// cancelled returns the error of Options.Cancelled; nil to continue.
func (w *Writer) cancelled() error {
	if w.opt.Cancelled == nil {
		return nil
	}
	return w.opt.Cancelled()
}

// polled is a writer that fails once the writing is cancelled.
type polled struct {
	io.Writer
	cancelled func() error
}

// Write writes b, unless the writing is cancelled.
func (p *polled) Write(b []byte) (int, error) {
	if err := p.cancelled(); err != nil {
		return 0, err
	}
	return p.Writer.Write(b)
}

// Progress returns how many of the file's events have been written: 0 of 0 until Close begins. It may be
// called while another goroutine closes the Writer.
func (w *Writer) Progress() (written, total int64) { return w.written.Load(), w.total.Load() }

// swap passes the full batch to the goroutine that sorts and spills it.
func (w *Writer) swap() {
	if w.err = w.cancelled(); w.err != nil {
		return
	}
	if w.spool == nil {
		if w.startSpool(); w.err != nil {
			return
		}
	}
	w.hand()
}

// order returns the order of events on the present tracks.
func (w *Writer) order() pack.Order { return w.places.Order(len(w.tracks), w.compare, w.opt.NCCLStyle) }

// ordered lists the tracks by process and thread.
func (w *Writer) ordered() []int32 { return w.places.Sorted(len(w.tracks), w.compare) }

func (w *Writer) compare(a, b int32) (process, thread int) {
	x, y := &w.tracks[a], &w.tracks[b]
	return cmp.Compare(x.Process, y.Process), cmp.Compare(x.Thread, y.Thread)
}

// hand exchanges the current batch for an empty one.
func (w *Writer) hand() {
	w.cur.Order = w.order()
	w.full <- w.cur
	w.cur = <-w.spare
}

func (w *Writer) startSpool() {
	var f Spool = &memorySpool{}
	if w.opt.Spool != nil {
		var err error
		if f, err = w.opt.Spool(); err != nil {
			w.err = fmt.Errorf("spool: %w", err)
			return
		}
	}
	w.spool = f
	w.full, w.spare, w.spilled = make(chan *pack.Batch), make(chan *pack.Batch, 2), make(chan error, 1)
	w.spare <- &pack.Batch{}
	go func() {
		var first error
		var memory pack.Sorter
		out := &polled{f, w.cancelled}
		for b := range w.full {
			if first == nil {
				memory.Sort(b)
				var size int64
				size, first = memory.Spill(b, out)
				w.sizes = append(w.sizes, size)
			}
			b.Reset()
			w.spare <- b
		}
		w.spilled <- first
	}()
}

// Close writes the file: envelope, metadata, events.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.zeroCounters()
	w.closed = true
	w.total.Store(w.events)
	err := w.err
	if w.spool != nil {
		if len(w.cur.Recs) > 0 {
			w.hand()
		}
		close(w.full)
		err = errors.Join(err, <-w.spilled)
		defer w.spool.Close()
	}
	if err == nil {
		err = w.write()
	}
	if w.finish != nil {
		return w.finish(err)
	}
	return err
}

func (w *Writer) zeroCounters() {
	if w.err != nil || w.opt.NCCLStyle {
		return
	}
	var open []counterKey
	for k, c := range w.counters { //lint:sorted the list is sorted below
		if !c.zero {
			open = append(open, k)
		}
	}
	slices.SortFunc(open, func(a, b counterKey) int {
		if a.track != b.track {
			return int(a.track) - int(b.track)
		}
		return strings.Compare(a.name, b.name)
	})
	for _, k := range open {
		args := []trace.Arg{trace.Int(w.counters[k].key, 0)}
		w.add(&trace.Event{Phase: trace.Counter, Track: k.track, Name: k.name, Args: args}, w.end, w.end)
	}
}

// Clock sets the begin of a run and the offsets of the ranks' clocks, for runs that know them only at the
// end.
func (w *Writer) Clock(epochNs int64, sync []ClockSync) {
	w.opt.Meta.EpochNs, w.opt.Meta.ClockSync = epochNs, sync
}

// Overflow sets the number of lanes beyond the reserved numbers.
func (w *Writer) Overflow(lanes int64) { w.overflow = lanes }

// LeaveOut adds to the number of omitted events of a category.
func (w *Writer) LeaveOut(category string, n int64) {
	if n > 0 {
		w.left[category] += n
	}
}

// Abort discards the file: nothing appears under its name.
func (w *Writer) Abort() {
	if w.err == nil {
		w.err = errors.New("given up")
	}
	_ = w.Close()
}
