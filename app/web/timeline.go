package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
)

// Timeline is tracks with their slices, as columns: what the page draws.
type Timeline struct {
	Title  string  `json:"title"`
	Tracks []Track `json:"tracks"` // in the order of a viewer
	// By slice: its track, start and length in nanoseconds, its name's and kind's number.
	Track []int32  `json:"track"`
	Start []int64  `json:"start"`
	Dur   []int64  `json:"dur"`
	Name  []int32  `json:"name"`
	Kind  []uint8  `json:"kind"`
	Names []string `json:"names"`
	Kinds []string `json:"kinds"`
	EndNs int64    `json:"endNs"`
	Left  int      `json:"left"` // slices beyond the bound
	Note  string   `json:"note"`
}

// Track names a row of the timeline.
type Track struct {
	Process string `json:"process"`
	Thread  string `json:"thread"`
}

// maxSlices bounds a timeline of the page.
const maxSlices = 400_000

// The kinds of slices, by their place in Timeline.Kinds. Idle ones are left out: an empty
// row says it.
const (
	operation uint8 = iota
	waits
	sends
	receives
	computes
	kernel
	launches
	proxies
	idle
)

var kindWords = []string{"operation", "waiting", "on the wire", "receive", "compute", "kernel", "launch",
	"proxy"}

// kinds are those of slices by name; names of the profiler plugin, ours, and a job's.
var kinds = map[string]uint8{
	"SendPeerWait": waits, "SendGpuWait": waits, "RecvGpuWait": waits, "RecvFlushWait": waits, "wait": waits,
	"paused": waits, nccl.NoCredits: waits, "SendWait": sends, "send": sends, "RecvWait": waits,
	"recv":     receives,
	"KernelCh": kernel, "kernel": kernel, "KernelLaunch": launches, "launch": launches, "Group API": launches,
	"Idle": idle, "Sleep": idle,
	"ScheduleSend": proxies, "ScheduleRecv": proxies, "ProgressSend": proxies, "ProgressRecv": proxies,
	"Append": proxies,
}

// builder collects a Timeline as a trace.Sink.
type builder struct {
	trace.Memory
	keep func(*trace.Track) bool
	kept map[trace.TrackID]bool
	left int
}

func (b *builder) Track(t trace.Track) trace.TrackID {
	id := b.Memory.Track(t)
	if _, seen := b.kept[id]; !seen {
		b.kept[id] = b.keep == nil || b.keep(&t)
	}
	return id
}

func (b *builder) Emit(e *trace.Event) {
	if e.Phase != trace.Slice || !b.kept[e.Track] {
		return
	}
	if len(b.Events) >= maxSlices {
		b.left++
		return
	}
	if kindOf(e) == idle {
		return
	}
	bare := *e
	bare.Args = nil
	b.Memory.Emit(&bare)
}

func (b *builder) timeline(title string) *Timeline {
	t := &Timeline{Title: title, Kinds: kindWords, Left: b.left, Tracks: []Track{}, Names: []string{},
		Track: []int32{}, Start: []int64{}, Dur: []int64{}, Name: []int32{}, Kind: []uint8{}}
	used := make([]bool, len(b.Tracks))
	for i := range b.Events {
		used[b.Events[i].Track] = true
	}
	var order []int
	for i := range b.Tracks {
		if used[i] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := &b.Tracks[i], &b.Tracks[j]
		return cmp.Or(cmp.Compare(x.ProcessSort, y.ProcessSort), cmp.Compare(x.Process, y.Process),
			cmp.Compare(x.ThreadSort, y.ThreadSort), cmp.Compare(x.Thread, y.Thread))
	})
	row := make([]int32, len(b.Tracks))
	for n, i := range order {
		row[i] = int32(n)
		t.Tracks = append(t.Tracks, Track{b.Tracks[i].ProcessName, b.Tracks[i].ThreadName})
	}
	names := map[string]int32{}
	for i := range b.Events {
		e := &b.Events[i]
		n, ok := names[e.Name]
		if !ok {
			n = int32(len(t.Names))
			names[e.Name] = n
			t.Names = append(t.Names, e.Name)
		}
		start, end := trace.Span(e.Start, e.Start+e.Dur)
		t.Track, t.Start, t.Dur, t.Name, t.Kind = append(t.Track, row[e.Track]), append(t.Start, start),
			append(t.Dur, end-start), append(t.Name, n), append(t.Kind, kindOf(e))
		t.EndNs = max(t.EndNs, end)
	}
	return t
}

func kindOf(e *trace.Event) uint8 {
	if k, ok := kinds[e.Name]; ok {
		return k
	}
	switch e.Cat {
	case "compute", "cpu_op":
		return computes
	case "kernel":
		return kernel
	case "PROXY":
		return proxies
	}
	return operation
}

const (
	// timelineRanks are the ranks whose steps the page draws.
	timelineRanks = 4
	// pathRanks bounds the communicators for which all steps are simulated, to find the
	// critical path.
	pathRanks = 64
)

// timeline simulates one size with its steps. It begins with the kernels: the calls of the
// host are in the trace alone.
func (s *Service) timeline(ctx context.Context, q *Query, emit Emit) (any, error) {
	spec := q.Spec.Clone()
	if q.Size != "" {
		spec.Workload.Sizes, spec.Workload.Range = []string{q.Size}, scenario.Range{}
	}
	r, x, err := s.running(ctx, &spec)
	if err != nil {
		return nil, err
	}
	lines := firstLines(r)
	if len(lines) == 0 || lines[len(lines)-1].Count == 0 {
		return nil, &scenario.FieldError{Path: "workload.sizes",
			Problem: "the size is too small for so many ranks; there is nothing to draw"}
	}
	last := lines[len(lines)-1]
	b := &builder{kept: map[trace.TrackID]bool{}, keep: func(t *trace.Track) bool {
		return t.Process == nccl.CriticalPID || t.Process >= nccl.RankPID && t.Process < nccl.RankPID+
			timelineRanks
	}}
	opt := nccl.Options{Detail: nccl.DetailStep}
	var sink trace.Sink = b
	note := "critical path, and the first ranks"
	if x.site.Comm.NRanks <= pathRanks {
		sink = nccl.CriticalPath(b, ctx.Err)
	} else {
		opt.Ranks = func(r int) bool { return r < timelineRanks }
		note = "the first ranks; of so many no critical path is sought"
	}
	if r.MayDraw() { // the draw of its row
		o, err := r.Drawn(ctx, last.Operation, false, nil)
		if err != nil {
			return nil, err
		}
		r = r.Of(&o)
	}
	if _, err := r.Simulate(ctx, last.Operation, sink, opt, func(share float64) {
		emit(Progress{share, "timeline"})
	}); err != nil {
		return nil, err
	}
	if err := sink.Close(); err != nil {
		return nil, err
	}
	t := b.timeline(r.Func().TestName() + ", " + sizeName(int64(last.Shown)))
	t.Note = note
	return t, nil
}

// open reads a trace that the page holds.
func (s *Service) open(ctx context.Context, q *Query, _ Emit) (any, error) {
	data, err := s.read(q.Name)
	if err != nil {
		return nil, err
	}
	b := &builder{kept: map[trace.TrackID]bool{}}
	tracks := map[[2]int64]*trace.Track{}
	var ids = map[[2]int64]trace.TrackID{}
	track := func(pid, tid int64) *trace.Track {
		k := [2]int64{pid, tid}
		if tracks[k] == nil {
			tracks[k] = &trace.Track{Process: pid, Thread: tid, ProcessSort: pid, ThreadSort: tid}
		}
		return tracks[k]
	}
	processes := map[int64]string{}
	n := 0
	_, err = chrome.Read(bytes.NewReader(data), func(e *chrome.Event) error {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		name, _ := e.Arg("name")
		switch {
		case e.Phase == 'M' && e.Name == "process_name":
			processes[e.PID] = name.Str
		case e.Phase == 'M' && e.Name == "thread_name":
			track(e.PID, e.TID).ThreadName = name.Str
		case e.Phase == 'X' && e.HasTS && e.HasDur && e.BadTS == "":
			k := [2]int64{e.PID, e.TID}
			t := track(e.PID, e.TID)
			id, seen := ids[k]
			if !seen {
				id = b.Track(*t)
				ids[k] = id
			}
			b.Emit(&trace.Event{Phase: trace.Slice, Track: id, Start: e.TS, Dur: e.Dur, Cat: e.Cat,
				Name: e.Name})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(b.Events) == 0 {
		return nil, errors.New(q.Name + ": the trace has no slices")
	}
	for k, id := range ids { //lint:sorted each is filled in by itself
		t := &b.Tracks[id]
		t.ProcessName, t.ThreadName = processes[k[0]], tracks[k].ThreadName
	}
	return b.timeline(q.Name), nil
}

// ofJob is the timeline of a job that ran.
func ofJob(title string, t *timeline.Timeline, rank func(int) string) *Timeline {
	b := &builder{kept: map[trace.TrackID]bool{}}
	t.Write(b, rank)
	return b.timeline(title)
}
