package nccllog

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// InspectorRecord is one call of a rank.
type InspectorRecord struct {
	Comm     string // identifier of the communicator, the same in all members
	Rank     int32  // in the communicator
	Ranks    int32
	Nodes    int32
	Version  string // of the format
	Func     string
	Serial   int64
	Bytes    int64 // nccl-tests' size
	Time     units.Time
	Source   string // of the time: kernel_gpu, kernel_cpu, collective_cpu
	AlgBw    float64
	BusBw    float64
	Peer     int32 // of sends and receives; -1 none
	DumpedUs int64
}

// RecogniseInspector reports whether a text begins like a file of NCCL's Inspector.
func RecogniseInspector(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) &&
		bytes.Contains(head, []byte(`"header"`)) &&
		(bytes.Contains(head, []byte(`"coll_perf"`)) || bytes.Contains(head, []byte(`"p2p_perf"`)) ||
			bytes.Contains(head, []byte(`"inspector_output_format_version"`)))
}

// maxRecords is the largest accepted number of records.
const maxRecords = 1 << 25

// ReadInspector reads records. A file that ends within one is read to the last whole one, and
// truncated is set. The error is a *fail.FileError.
func ReadInspector(in io.Reader, file string) (list []InspectorRecord, truncated bool, err error) {
	s := jsonscan.New(in, file)
	for s.Peek() != 0 {
		if s.Peek() == ',' || s.Peek() == '[' || s.Peek() == ']' {
			return nil, false, s.Fail("objects follow each other without commas",
				"this is no output of the Inspector")
		}
		r := InspectorRecord{Peer: -1}
		if err := s.Object(func(key []byte) error { return member(s, &r, key) }); err != nil {
			if len(list) > 0 && s.Peek() == 0 {
				return list, true, nil
			}
			return nil, false, err
		}
		if r.Func == "" {
			return nil, false, s.Fail("a record has coll_perf or p2p_perf",
				"the record before this place has no call")
		}
		if list = append(list, r); len(list) > maxRecords {
			return nil, false, s.Fail("", "more than %d records", maxRecords)
		}
	}
	return list, false, nil
}

func member(s *jsonscan.Scanner, r *InspectorRecord, key []byte) error {
	switch string(key) {
	case "header", "metadata", "coll_perf", "p2p_perf":
		if s.Peek() != '{' {
			return s.Skip()
		}
		return s.Object(func(key []byte) error { return field(s, r, key) })
	}
	return s.Skip()
}

func field(s *jsonscan.Scanner, r *InspectorRecord, key []byte) (err error) {
	text := func(to *string) {
		var t []byte
		t, err = s.Text()
		*to = string(t)
	}
	small := func(to *int32) {
		var n int64
		n, err = s.Int()
		*to = int32(min(max(n, -1), 1<<30))
	}
	switch string(key) {
	case "id":
		text(&r.Comm)
	case "rank":
		small(&r.Rank)
	case "n_ranks":
		small(&r.Ranks)
	case "nnodes":
		small(&r.Nodes)
	case "inspector_output_format_version":
		text(&r.Version)
	case "dump_timestamp_us":
		r.DumpedUs, err = s.Int()
	case "coll", "p2p":
		text(&r.Func)
	case "coll_sn", "p2p_sn":
		r.Serial, err = s.Int()
	case "coll_msg_size_bytes", "p2p_msg_size_bytes":
		r.Bytes, err = s.Int()
	case "coll_exec_time_us", "p2p_exec_time_us":
		var f float64
		f, err = s.Float()
		r.Time = units.Time(min(max(f, 0), 1e12) * 1e6)
	case "coll_timing_source", "p2p_timing_source":
		text(&r.Source)
	case "coll_algobw_gbs", "p2p_algobw_gbs":
		r.AlgBw, err = s.Float()
	case "coll_busbw_gbs", "p2p_busbw_gbs":
		r.BusBw, err = s.Float()
	case "p2p_peer":
		small(&r.Peer)
	default:
		err = s.Skip()
	}
	return err
}

// InspectorProgram converts records to a program: every collective once, in the order of each communicator,
// on all its ranks, with the longest time that a rank recorded. A communicator smaller than the largest one
// is assumed to consist of the first ranks: records do not list members.
func InspectorProgram(list []InspectorRecord) (p *workload.Program, notes []string, err error) {
	type id struct {
		comm   string
		serial int64
	}
	world := int32(0)
	calls := map[id]InspectorRecord{}
	messages, unknown := 0, 0
	for _, r := range list {
		world = max(world, r.Ranks)
		if r.Peer >= 0 {
			messages++
			continue
		}
		k := id{r.Comm, r.Serial}
		if old, known := calls[k]; !known || r.Time > old.Time {
			calls[k] = r
		}
	}
	if world < 1 || world > 1<<20 {
		return nil, nil, fmt.Errorf("the records name %d ranks", world)
	}
	var order []id
	for k := range calls { //lint:sorted the keys are sorted next
		order = append(order, k)
	}
	slices.SortFunc(order, func(a, b id) int {
		return cmp.Or(cmp.Compare(a.comm, b.comm), cmp.Compare(a.serial, b.serial))
	})
	p = &workload.Program{Of: make([]int32, world)}
	b := inspectorBuilder{p: p, index: map[string]int32{}}
	for _, k := range order {
		if !b.call(calls[k]) {
			unknown++
		}
	}
	b.lists()
	notes = append(notes, "records of the Inspector have no computations, and by default no calls below 8 "+
		"KiB: calls follow each other")
	if b.smaller {
		notes = append(notes,
			"records do not say which ranks a smaller communicator has; the first are taken")
	}
	if messages > 0 {
		notes = append(notes, fmt.Sprintf("%d sends and receives were left out", messages))
	}
	if unknown > 0 {
		notes = append(notes, fmt.Sprintf("%d calls are not known and were left out", unknown))
	}
	return p, notes, nil
}

type inspectorBuilder struct {
	p       *workload.Program
	index   map[string]int32
	order   []int32 // calls
	smaller bool
}

func (b *inspectorBuilder) call(r InspectorRecord) bool {
	f, err := coll.ParseFunc(r.Func)
	if err != nil || r.Bytes < 0 || r.Bytes > 1<<50 || r.Ranks < 1 {
		return false
	}
	i, known := b.index[r.Comm]
	if !known {
		i = int32(len(b.p.Comms))
		b.index[r.Comm] = i
		c := workload.Comm{Name: fmt.Sprintf("comm%d", i), Desc: r.Comm}
		if int(r.Ranks) < len(b.p.Of) {
			b.smaller = true
			for m := range r.Ranks {
				c.Ranks = append(c.Ranks, m)
			}
		}
		b.p.Comms = append(b.p.Comms, c)
	}
	n := int64(b.p.Comms[i].Size(len(b.p.Of)))
	c := workload.Call{Comm: i, Func: f, Type: coll.Int8, Count: r.Bytes, Recorded: r.Time}
	switch f {
	case coll.AllGather, coll.ReduceScatter, coll.AllToAll, coll.Gather, coll.Scatter:
		c.Count = (r.Bytes + n - 1) / n
	}
	b.order = append(b.order, int32(len(b.p.Calls)))
	b.p.Calls = append(b.p.Calls, c)
	return true
}

// lists assigns one list to all ranks of the same communicators.
func (b *inspectorBuilder) lists() {
	byCalls := map[string]int32{}
	for r := range b.p.Of {
		var steps []workload.Step
		for _, c := range b.order {
			comm := &b.p.Comms[b.p.Calls[c].Comm]
			if r < comm.Size(len(b.p.Of)) {
				steps = append(steps, workload.Step{Kind: workload.Issue, Call: c, Stream: b.p.Calls[c].Comm})
			}
		}
		key := fmt.Sprint(len(steps))
		i, known := byCalls[key]
		if !known {
			i = int32(len(b.p.Lists))
			byCalls[key] = i
			b.p.Lists = append(b.p.Lists, workload.List{Name: fmt.Sprintf("rank%d", r), Steps: steps})
		}
		b.p.Of[r] = i
	}
}
