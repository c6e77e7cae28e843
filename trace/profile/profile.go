// Package profile converts a timeline to a pprof profile: it shows where the time of every rank's operations
// is spent. A profile has no time axis, so it sums up the spans of the trace; `go tool pprof` filters, ranks
// and compares it.
//
// Time is wall time of the rank, not of its channels: at every instant of an operation the steps in progress
// share the instant equally, and an instant without any step belongs to the kernel, or outside every kernel
// to the operation itself. A receive that a proxy has posted counts only while nothing else is active. So the
// total is exactly the sum over ranks of their operations' times.
//
// A stack is, leaf first: wait kind, peer, channel, operation, rank. A leaf's file is the link it waited for,
// so -files ranks links.
package profile

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Writer is a trace.Sink that writes a profile when it is closed. It stores 32 bytes per step. Processes
// without operations (NICs, links) are ignored.
type Writer struct {
	out    io.Writer
	opt    Options
	polls  int
	tracks []track
	known  map[[2]int64]trace.TrackID
	ranks  []*rank
	byPID  map[int64]*rank
	stacks map[stackKey]int32
	keys   []stackKey
	closed bool
	giveUp bool
	finish func(error) error
}

type track struct {
	rank    *rank
	channel string
}

// stackKey distinguishes steps in a profile.
type stackKey struct {
	channel, wait, cat, link, transport string
	peer                                int64
}

type span struct {
	start, end units.Time
	stack      int32 // index of keys; -1 for a kernel
}

type operation struct {
	start, end             units.Time
	name, algorithm, proto string
}

type rank struct {
	pid        int64
	name, node string
	ops        []operation
	spans      []span
	bytes      map[int32]int64
	steps      map[int32]int64
}

// Options configure a Writer.
type Options struct {
	// Cancelled, if set, is polled while the profile is made; its error ends that, and no file appears.
	Cancelled func() error
}

// New returns a Writer that writes a compressed profile to out.
func New(out io.Writer, opt Options) *Writer {
	return &Writer{out: out, opt: opt, known: make(map[[2]int64]trace.TrackID), byPID: make(map[int64]*rank),
		stacks: make(map[stackKey]int32)}
}

// File is a file under construction: Finish gives it its name, or discards it if err is not nil.
type File interface {
	io.Writer
	Finish(err error) error
}

// To returns a Writer to a file that was created for path. Close or Abort finishes the file.
func To(file File, path string, opt Options) *Writer {
	w := New(file, opt)
	w.finish = func(err error) error {
		if err = file.Finish(err); err != nil {
			return fmt.Errorf("write profile %s: %w", path, err)
		}
		return nil
	}
	return w
}

// Track registers a lane.
func (w *Writer) Track(t trace.Track) trace.TrackID {
	k := [2]int64{t.Process, t.Thread}
	if id, ok := w.known[k]; ok {
		return id
	}
	r := w.byPID[t.Process]
	if r == nil {
		r = &rank{pid: t.Process, bytes: make(map[int32]int64), steps: make(map[int32]int64)}
		r.name, _, _ = strings.Cut(t.ProcessName, " · ")
		r.node = t.Labels
		w.byPID[t.Process] = r
		w.ranks = append(w.ranks, r)
	}
	channel := ""
	if strings.HasPrefix(t.ThreadName, "ch ") {
		if f := strings.Fields(t.ThreadName); len(f) >= 2 {
			channel = "ch " + f[1]
		}
	}
	id := trace.TrackID(len(w.tracks))
	w.tracks = append(w.tracks, track{r, channel})
	w.known[k] = id
	return id
}

// Emit stores operations, kernels and steps.
func (w *Writer) Emit(e *trace.Event) {
	if e.Phase != trace.Slice {
		return
	}
	t := &w.tracks[e.Track]
	switch e.Cat {
	case "COLL", "P2P":
		op := operation{start: e.Start, end: e.Start + e.Dur, name: e.Name}
		op.algorithm, op.proto = text(e.Args, "Algorithm"), text(e.Args, "Protocol")
		t.rank.ops = append(t.rank.ops, op)
	case "GPU":
		t.rank.spans = append(t.rank.spans, span{e.Start, e.Start + e.Dur, -1})
	case "NET", "P2P_XFER":
		k := stackKey{t.channel, e.Name, e.Cat, text(e.Args, "link"), text(e.Args, "transport"),
			number(e.Args, "Peer")}
		id, ok := w.stacks[k]
		if !ok {
			id = int32(len(w.keys))
			w.keys = append(w.keys, k)
			w.stacks[k] = id
		}
		t.rank.spans = append(t.rank.spans, span{e.Start, e.Start + e.Dur, id})
		if e.Name == "SendWait" || e.Name == "RecvWait" {
			t.rank.bytes[id] += number(e.Args, "bytes")
			t.rank.steps[id]++
		}
	}
}

func text(args []trace.Arg, key string) string {
	for i := range args {
		if args[i].Key == key {
			return args[i].Str
		}
	}
	return ""
}

func number(args []trace.Arg, key string) int64 {
	for i := range args {
		if args[i].Key == key {
			return args[i].Int
		}
	}
	return 0
}

// Close writes the profile.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	if w.giveUp {
		return w.end(errors.New("given up"))
	}
	p, err := w.build()
	if err == nil {
		err = p.CheckValid()
	}
	if err == nil {
		var z *gzip.Writer
		if z, err = gzip.NewWriterLevel(w.out, gzip.BestCompression); err == nil {
			if err = p.WriteUncompressed(z); err == nil {
				err = z.Close()
			}
		}
	}
	return w.end(err)
}

func (w *Writer) end(err error) error {
	if w.finish != nil {
		return w.finish(err)
	}
	return err
}

// Abort discards the profile: nothing appears under the file's name.
func (w *Writer) Abort() {
	w.giveUp = true
	_ = w.Close()
}

// pollEvery is the number of rounds of a long loop between two polls.
const pollEvery = 1 << 12

// poll checks periodically whether the profile is cancelled.
func (w *Writer) poll() error {
	if w.polls++; w.opt.Cancelled == nil || w.polls < pollEvery {
		return nil
	}
	w.polls = 0
	return w.opt.Cancelled()
}

// share is the wall time of one stack within one operation.
type share struct {
	op    int   // index of rank.ops
	stack int32 // index of keys; -1 kernel, -2 outside every kernel
}

// edge is the begin or end of a span.
type edge struct {
	at    units.Time
	index int
	open  bool
}

// edges returns the begins and ends of a rank's spans in the order of time.
func (r *rank) edges() []edge {
	var edges []edge
	for i, s := range r.spans {
		if s.end > s.start {
			edges = append(edges, edge{s.start, i, true}, edge{s.end, i, false})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index))
	})
	return edges
}

// attribute divides a rank's operations among the activities during them. posted marks stacks of receives
// that wait for data of the network: proxies post them long before, so they only count while nothing else is
// active. The first of the active steps gets the remainder of a division in picoseconds. An error of poll
// ends it.
func (r *rank) attribute(posted func(stack int32) bool, poll func() error) (shares []share,
	time map[share]units.Time, err error) {
	edges := r.edges()
	slices.SortStableFunc(r.ops, func(a, b operation) int { return cmp.Compare(a.start, b.start) })
	time = make(map[share]units.Time)
	active := make(map[int32]int64) // stack → steps in progress
	var orders [2][]int32           // its keys, ascending: of steps, of posted receives
	kernels := int64(0)
	spend := func(from, to units.Time) {
		for op := range r.ops {
			o := &r.ops[op]
			if o.start >= to {
				break
			}
			if d := min(to, o.end) - max(from, o.start); d > 0 {
				order := orders[0]
				if len(order) == 0 {
					order = orders[1]
				}
				divide(time, op, d, active, order, kernels)
			}
		}
	}
	last := units.Time(-1 << 62)
	for _, e := range edges {
		if err := poll(); err != nil {
			return nil, nil, err
		}
		if e.at > last {
			spend(last, e.at)
			last = e.at
		}
		stack, n := r.spans[e.index].stack, int64(1)
		if !e.open {
			n = -1
		}
		if stack < 0 {
			kernels += n
			continue
		}
		before := active[stack]
		active[stack] += n
		order := &orders[0]
		if posted(stack) {
			order = &orders[1]
		}
		at, found := slices.BinarySearch(*order, stack)
		if before == 0 && !found {
			*order = slices.Insert(*order, at, stack)
		} else if active[stack] == 0 && found {
			*order = slices.Delete(*order, at, at+1)
		}
	}
	spend(last, 1<<62)
	shares = slices.SortedFunc(maps.Keys(time), func(a, b share) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.stack, b.stack))
	})
	return shares, time, nil
}

func divide(time map[share]units.Time, op int, d units.Time, active map[int32]int64, order []int32,
	kernels int64) {
	if len(order) == 0 {
		stack := int32(-2)
		if kernels > 0 {
			stack = -1
		}
		time[share{op, stack}] += d
		return
	}
	total := int64(0)
	for _, s := range order {
		total += active[s]
	}
	left := d
	for _, s := range order[1:] {
		part := units.Time(int64(d) / total * active[s])
		time[share{op, s}] += part
		left -= part
	}
	time[share{op, order[0]}] += left
}

// build makes the profile: ranks by process number, then stacks in order.
func (w *Writer) build() (*profile.Profile, error) {
	b := builder{p: &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "time", Unit: "nanoseconds"},
			{Type: "bytes", Unit: "bytes"}, {Type: "steps", Unit: "count"}},
		DefaultSampleType: "time",
		PeriodType:        &profile.ValueType{Type: "time", Unit: "nanoseconds"},
		Period:            1,
	}, functions: make(map[[2]string]*profile.Location)}
	b.mapping = &profile.Mapping{ID: 1, File: "simccl", HasFunctions: true, HasFilenames: true}
	b.p.Mapping = []*profile.Mapping{b.mapping}
	slices.SortFunc(w.ranks, func(a, b *rank) int { return cmp.Compare(a.pid, b.pid) })
	var end units.Time
	for _, r := range w.ranks {
		if len(r.ops) == 0 {
			continue
		}
		if err := w.addRank(&b, r); err != nil {
			return nil, err
		}
		for _, o := range r.ops {
			end = max(end, o.end)
		}
	}
	b.p.DurationNanos = int64(end / units.Nanosecond)
	return b.p, nil
}

type builder struct {
	p         *profile.Profile
	mapping   *profile.Mapping
	functions map[[2]string]*profile.Location
	rest      units.Time // picoseconds not yet written: the total stays exact
}

func (b *builder) location(name, file string) *profile.Location {
	k := [2]string{name, file}
	if l, ok := b.functions[k]; ok {
		return l
	}
	id := uint64(len(b.p.Function) + 1)
	f := &profile.Function{ID: id, Name: name, SystemName: name, Filename: file}
	l := &profile.Location{ID: id, Mapping: b.mapping, Address: id, Line: []profile.Line{{Function: f}}}
	b.p.Function = append(b.p.Function, f)
	b.p.Location = append(b.p.Location, l)
	b.functions[k] = l
	return l
}

// addRank adds the samples of a rank: its time by operation, and by the stack that attribute gives it to.
func (w *Writer) addRank(b *builder, r *rank) error {
	shares, time, err := r.attribute(func(stack int32) bool {
		k := &w.keys[stack]
		return k.cat == "NET" && k.wait == "RecvWait"
	}, w.poll)
	if err != nil {
		return err
	}
	counted := make(map[int32]bool)
	root := b.location(r.name, "ranks")
	for _, s := range shares {
		o := &r.ops[s.op]
		b.rest += time[s]
		ns := int64(b.rest / units.Nanosecond)
		b.rest -= units.Time(ns) * units.Nanosecond
		name := o.name
		if o.algorithm != "" {
			name = fmt.Sprintf("%s (%s/%s)", o.name, o.algorithm, o.proto)
		}
		op := b.location(name, "operations")
		sample := &profile.Sample{Value: []int64{ns, 0, 0}, Label: map[string][]string{"rank": {r.name},
			"operation": {o.name}},
			NumLabel: map[string][]int64{}, NumUnit: map[string][]string{}}
		label := func(key, value string) {
			if value != "" {
				sample.Label[key] = []string{value}
			}
		}
		label("node", r.node)
		label("proto", o.proto)
		switch s.stack {
		case -2:
			sample.Location = []*profile.Location{b.location("launch and end", "host"), op, root}
		case -1:
			sample.Location = []*profile.Location{b.location("kernel", "GPU"), op, root}
		default:
			k := w.keys[s.stack]
			label("channel", k.channel)
			label("link", k.link)
			label("transport", k.transport)
			label("peer", fmt.Sprintf("rank %d", k.peer))
			if !counted[s.stack] { // bytes and steps count once, with the first operation
				counted[s.stack] = true
				sample.Value[1], sample.Value[2] = r.bytes[s.stack], r.steps[s.stack]
				if r.bytes[s.stack] > 0 {
					sample.NumLabel["bytes"], sample.NumUnit["bytes"] = []int64{r.bytes[s.stack]},
						[]string{"bytes"}
				}
			}
			way := "from"
			if strings.HasPrefix(k.wait, "Send") {
				way = "to"
			}
			sample.Location = []*profile.Location{b.location(k.wait, cmp.Or(k.link, k.transport)),
				b.location(fmt.Sprintf("%s rank %d", way, k.peer), "peers"),
				b.location(k.channel, "channels"), op, root}
		}
		b.p.Sample = append(b.p.Sample, sample)
	}
	return nil
}
