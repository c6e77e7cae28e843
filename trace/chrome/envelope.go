package chrome

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/internal/pack"
)

// Schema identifies the layout of our files; readers may rely on it.
const Schema = "simccl/1"

// separator precedes every event but the first, which is metadata.
const separator = ",\n"

// write writes the whole file.
func (w *Writer) write() error {
	if w.proto != nil {
		head := w.proto.Head(w.ordered(), func(id int32) *trace.Track { return &w.tracks[id].Track },
			w.other())
		return w.pour(head, w.body, nil)
	}
	return w.pour(append(w.head(), w.metadata()...), w.body, []byte("\n]}\n"))
}

// body calls each for all events in the order of the file: from memory, or merged from the spool.
func (w *Writer) body(each func(r *pack.Record, event []byte) error) error {
	o := w.order()
	if w.spool == nil {
		w.cur.Order = o
		new(pack.Sorter).Sort(w.cur)
		for i := range w.cur.Recs {
			r := w.cur.At(i)
			if err := each(r, w.cur.Bytes(r)); err != nil {
				return err
			}
		}
		return nil
	}
	var runs []*pack.Run
	off := int64(0)
	for _, size := range w.sizes {
		runs = append(runs, &pack.Run{In: io.NewSectionReader(w.spool, off, size)})
		off += size
	}
	return pack.Merge(&o, runs, each)
}

func (w *Writer) head() []byte {
	b := append([]byte(`{"displayTimeUnit":"ns",`+"\n"+`"otherData":`), w.other()...)
	return append(b, ",\n\"traceEvents\":[\n"...)
}

// other returns the trace's "otherData": its description of itself, as JSON.
func (w *Writer) other() []byte {
	m := &w.opt.Meta
	b := []byte(`{"schema":"` + Schema + `"`)
	text := func(k, v string) {
		if v != "" {
			b = appendString(append(appendString(append(b, ','), k), ':'), v)
		}
	}
	text("source", m.Source)
	text("simccl", m.Version)
	text("nccl_rules", m.NCCLRules)
	text("topo", m.Topo)
	text("fabric", m.Fabric)
	b = strconv.AppendInt(append(b, `,"seed":`...), m.Seed, 10)
	b = append(b, `,"env":{`...)
	for i, a := range m.Env {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(appendString(b, a.Key), ':'), a.Str)
	}
	b = append(strconv.AppendInt(append(b, `},"epoch_unix_ns":"`...), m.EpochNs, 10), '"')
	text("clock", m.Clock)
	b = appendSync(b, "clock_sync", m.ClockSync)
	b = appendSync(b, "gpu_clock_sync", m.GPUSync)
	if m.Part != nil {
		b = strconv.AppendInt(append(b, `,"part":{"rank":`...), int64(m.Part.Rank), 10)
		b = append(strconv.AppendInt(append(b, `,"of":`...), int64(m.Part.Of), 10), '}')
	}
	if w.overflow > 0 {
		b = strconv.AppendInt(append(b, `,"overflow_lanes":`...), w.overflow, 10)
	}
	b = strconv.AppendInt(append(b, `,"events":`...), w.events, 10)
	return append(w.leftOut(b), '}')
}

func appendSync(b []byte, key string, list []ClockSync) []byte {
	for i, c := range list {
		if i == 0 {
			b = append(appendString(append(b, ','), key), ":["...)
		} else {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"rank":`...), int64(c.Rank), 10)
		b = strconv.AppendInt(append(b, `,"offset_ns":`...), c.OffsetNs, 10)
		b = strconv.AppendInt(append(b, `,"uncertainty_ns":`...), c.UncertaintyNs, 10)
		b = append(b, '}')
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}

func (w *Writer) leftOut(b []byte) []byte {
	b = append(b, `,"left_out":{`...)
	for i, c := range slices.Sorted(maps.Keys(w.left)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(appendString(b, c), ':'), w.left[c], 10)
	}
	return append(b, '}')
}

// metadata returns the events that name and order processes and threads, by number.
func (w *Writer) metadata() []byte {
	order := w.ordered()
	var b []byte
	line := func(pid, tid int64, name, key, str string, num int64) {
		if len(b) > 0 {
			b = append(b, separator...)
		}
		b = appendMeta(b, pid, tid, name, key, str, num)
	}
	for i := range order {
		t := &w.tracks[order[i]]
		if i == 0 || w.tracks[order[i-1]].Process != t.Process {
			if t.ProcessName != "" {
				line(t.Process, -1, "process_name", "name", t.ProcessName, 0)
			}
			if t.Labels != "" {
				line(t.Process, -1, "process_labels", "labels", t.Labels, 0)
			}
			line(t.Process, -1, "process_sort_index", "sort_index", "", t.ProcessSort)
		}
		if w.opt.NCCLStyle {
			continue // all events are on thread 1
		}
		if t.ThreadName != "" {
			line(t.Process, t.Thread, "thread_name", "name", t.ThreadName, 0)
		}
		line(t.Process, t.Thread, "thread_sort_index", "sort_index", "", t.ThreadSort)
	}
	return b
}
