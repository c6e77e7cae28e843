package compare

import (
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
)

// mergedPID is added to the process numbers of each further trace in a merged one, so that they stay
// distinct.
const mergedPID = 10000000

// Merge writes traces into one sink: the first unchanged, each further one with other process numbers and its
// name in front of the process names. Pairs of begin and end become slices; arrows stay within their trace.
// It returns the number of events that the sink's schema cannot express. The caller closes the sink.
func Merge(to trace.Sink, names []string, traces []io.Reader, kept *trace.Budget) (left int, err error) {
	arrows := int64(0)
	for i, r := range traces {
		m := newMerger(to, kept)
		m.offset, m.base = int64(i)*mergedPID, arrows
		if i > 0 {
			m.prefix = "[" + names[i] + "] "
		}
		if _, err := chrome.Read(r, m.event); err != nil {
			return left, &TraceError{i, err}
		}
		left += m.left
		arrows = m.base + int64(len(m.arrows))
	}
	return left, nil
}

// nearTrack is a cache entry of a track, by a hash of its numbers.
type nearTrack struct {
	at    [2]int64
	id    trace.TrackID
	known bool
}

type merger struct {
	to      trace.Sink
	offset  int64
	prefix  string
	base    int64
	left    int
	pairs   *pairs
	kept    *trace.Budget
	tracks  map[[2]int64]trace.TrackID
	near    []nearTrack
	meta    map[int64]*trace.Track
	threads map[[2]int64]string
	sorts   map[[2]int64]int64
	arrows  map[string]int64
	key     []byte // scratch
}

// nearBits is the binary logarithm of the size of the cache of tracks: a run of 32 ranks has 19,000 tracks.
const nearBits = 15

func newMerger(to trace.Sink, kept *trace.Budget) *merger {
	return &merger{to: to, kept: kept, pairs: newPairs(kept), near: make([]nearTrack, 1<<nearBits),
		tracks: map[[2]int64]trace.TrackID{}, meta: map[int64]*trace.Track{},
		threads: map[[2]int64]string{}, sorts: map[[2]int64]int64{}}
}

func (m *merger) event(e *chrome.Event) error {
	if e.BadTS != "" {
		m.left++
		return nil
	}
	ev := trace.Event{Start: e.TS, Dur: e.Dur, Cat: e.Cat, Name: e.Name, Tint: e.Tint, Args: e.Args}
	switch e.Phase {
	case 'M':
		return m.metadata(e)
	case 'X', 'B', 'E':
		s, ok, err := m.pairs.slice(e)
		if err != nil {
			return err
		}
		if !ok {
			if e.Phase == 'E' {
				m.left++
			}
			return nil
		}
		ev.Start, ev.Dur, ev.Cat, ev.Name = s.start, s.end-s.start, s.cat, s.name
	case 'i', 'I':
		ev.Phase = trace.Instant
	case 'C':
		ev.Phase = trace.Counter
	case 's', 'f':
		ev.Phase = trace.FlowStart
		if e.Phase == 'f' {
			ev.Phase = trace.FlowEnd
		}
		id, err := m.arrow(e)
		if err != nil {
			return err
		}
		ev.ID = id
	default:
		m.left++
		return nil
	}
	if ev.Start < 0 {
		m.left++
		return nil
	}
	at, err := m.track(e)
	if err != nil {
		return err
	}
	ev.Track = at
	m.to.Emit(&ev)
	return nil
}

func (m *merger) arrow(e *chrome.Event) (int64, error) {
	m.key = append(append(append(append(append(m.key[:0], e.Cat...), 0), e.Name...), 0), e.ID...)
	if id, ok := m.arrows[string(m.key)]; ok {
		return id, nil
	}
	k := string(m.key)
	if m.arrows == nil {
		m.arrows = map[string]int64{}
	}
	id := m.base + int64(len(m.arrows)) + 1
	m.arrows[k] = id
	return id, m.kept.Keep(int64(len(k))+80, e.Line)
}

func (m *merger) metadata(e *chrome.Event) error {
	p := m.meta[e.PID]
	if p == nil {
		p = &trace.Track{}
		m.meta[e.PID] = p
	}
	name, _ := e.Arg("name")
	sort, _ := e.Arg("sort_index")
	labels, _ := e.Arg("labels")
	switch e.Name {
	case "process_name":
		p.ProcessName = name.Str
	case "process_labels":
		p.Labels = labels.Str
	case "process_sort_index":
		p.ProcessSort = sort.Int
	case "thread_name":
		m.threads[[2]int64{e.PID, e.TID}] = name.Str
	case "thread_sort_index":
		m.sorts[[2]int64{e.PID, e.TID}] = sort.Int
	}
	return m.kept.Keep(int64(len(name.Str)+len(labels.Str))+160, e.Line)
}

// track returns the sink's track of an event.
func (m *merger) track(e *chrome.Event) (trace.TrackID, error) {
	pid, tid := e.PID, e.TID
	k := [2]int64{pid, tid}
	near := &m.near[(uint64(pid)*0xff51afd7ed558ccd+uint64(tid))*0x9e3779b97f4a7c15>>(64-nearBits)]
	if near.known && near.at == k {
		return near.id, nil
	}
	if id, ok := m.tracks[k]; ok {
		near.at, near.id, near.known = k, id, true
		return id, nil
	}
	t := trace.Track{Process: pid + m.offset, Thread: tid, ThreadName: m.threads[k], ThreadSort: tid}
	if s, ok := m.sorts[k]; ok {
		t.ThreadSort = s
	}
	name := fmt.Sprintf("process %d", pid)
	if p := m.meta[pid]; p != nil {
		t.Labels, t.ProcessSort = p.Labels, p.ProcessSort
		if p.ProcessName != "" {
			name = p.ProcessName
		}
	}
	t.ProcessName = strings.TrimSpace(m.prefix + name)
	id := m.to.Track(t)
	m.tracks[k] = id
	return id, m.kept.Keep(int64(len(t.ProcessName)+len(t.ThreadName))+600, e.Line)
}
