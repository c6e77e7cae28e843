package kineto

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// maxEvents is the largest accepted number of events.
const maxEvents = 1 << 30

// Read parses one recording; file is the name in errors, which are of type *fail.FileError. A file truncated
// within an event is read up to the last complete one, and Truncated is set.
func Read(in io.Reader, file string) (*Trace, error) {
	r := &reader{s: jsonscan.New(in, file), t: &Trace{File: file, Rank: -1},
		names: map[string]int32{}, groups: map[string]int32{}, threads: map[string]int32{}}
	var err error
	switch r.s.Peek() {
	case '{':
		err = r.s.Object(r.member)
	case '[':
		err = r.events()
	default:
		return nil, r.s.Fail("it begins with { or [", "this is no Chrome trace")
	}
	if err != nil && !(errors.Is(err, jsonscan.ErrTruncated) && r.t.Events > 0) {
		return nil, err
	}
	if err != nil {
		r.t.Truncated = true
		r.t.Notes = append(r.t.Notes, err.Error()+": "+fmt.Sprintf("read to event %d, the last whole one",
			r.t.Events))
	}
	if r.t.Events == 0 {
		return nil, r.s.Fail("a Kineto trace has traceEvents", "there are no events")
	}
	r.finish()
	return r.t, nil
}

// reader holds the tables for interning names, groups and threads, and the event being read (e).
type reader struct {
	s       *jsonscan.Scanner
	t       *Trace
	names   map[string]int32
	groups  map[string]int32
	threads map[string]int32
	e       event
	base    int64
	bad     int // events without a time
	float   bool
}

// member reads one member of the outermost object.
func (r *reader) member(key []byte) error {
	switch string(key) {
	case "traceEvents":
		return r.events()
	case "distributedInfo":
		return r.distributed()
	case "deviceProperties":
		return r.devices()
	case "baseTimeNanoseconds":
		n, err := r.s.Int()
		r.base = n
		return err
	}
	return r.s.Skip()
}

func (r *reader) devices() error {
	if r.s.Peek() != '[' {
		return r.s.Skip()
	}
	return r.s.Array(func(i int) error {
		if i > 0 || r.s.Peek() != '{' {
			return r.s.Skip()
		}
		return r.s.Object(func(key []byte) error {
			switch string(key) {
			case "name":
				t, err := r.s.Text()
				r.t.GPU = string(t)
				return err
			case "numSms":
				n, err := r.s.Int()
				r.t.SMs = int(n)
				return err
			}
			return r.s.Skip()
		})
	})
}

// distributed reads the member distributedInfo: rank, world size, NCCL's version, process groups.
func (r *reader) distributed() error {
	if r.s.Peek() != '{' {
		return r.s.Skip()
	}
	return r.s.Object(func(key []byte) error {
		switch string(key) {
		case "rank":
			n, err := r.s.Int()
			r.t.Rank = int(n)
			return err
		case "world_size":
			n, err := r.s.Int()
			r.t.World = int(n)
			return err
		case "pg_count":
			n, err := r.s.Int()
			r.t.GroupCount = int(n)
			return err
		case "nccl_version":
			t, err := r.s.Text()
			r.t.NCCL = string(t)
			return err
		case "pg_config":
			return r.config()
		}
		return r.s.Skip()
	})
}

// config reads the process groups: an array, or an object by name in older files.
func (r *reader) config() error {
	one := func() error {
		if r.s.Peek() != '{' {
			return r.s.Skip()
		}
		var g Group
		err := r.s.Object(func(key []byte) error {
			switch string(key) {
			case "pg_name":
				t, err := r.s.Text()
				g.Name = string(t)
				return err
			case "pg_desc", "uid":
				t, err := r.s.Text()
				g.Desc = string(t)
				return err
			case "pg_size", "group_size":
				n, err := r.s.Int()
				g.Size = int(n)
				return err
			case "ranks":
				list, cut, err := r.s.Ints()
				g.Ranks, g.Cut = ranks(list), cut
				return err
			}
			return r.s.Skip()
		})
		if err == nil {
			r.group(g)
		}
		return err
	}
	switch r.s.Peek() {
	case '[':
		return r.s.Array(func(int) error { return one() })
	case '{':
		return r.s.Object(func([]byte) error { return one() })
	}
	return r.s.Skip()
}

func ranks(list []int64) []int32 {
	var out []int32
	for _, n := range list {
		out = append(out, int32(n))
	}
	return out
}

// group returns the index of a group, which is added or completed.
func (r *reader) group(g Group) int32 {
	i, known := r.groups[g.Name]
	if !known {
		i = int32(len(r.t.Groups))
		r.groups[g.Name] = i
		r.t.Groups = append(r.t.Groups, g)
		return i
	}
	k := &r.t.Groups[i]
	if len(g.Ranks) > len(k.Ranks) && (k.Cut || k.Ranks == nil && k.Size != r.t.World) {
		k.Ranks, k.Cut = g.Ranks, g.Cut
	}
	k.Size = max(k.Size, g.Size)
	k.Desc = cmp.Or(k.Desc, g.Desc)
	return i
}

func (r *reader) events() error {
	return r.s.Array(func(int) error {
		if r.s.Peek() != '{' {
			return r.s.Skip()
		}
		if r.t.Events >= maxEvents {
			return r.s.Fail("", "more than %d events", maxEvents)
		}
		r.e.reset()
		if err := r.s.Object(r.eventMember); err != nil {
			return err
		}
		r.t.Events++
		r.keep()
		return nil
	})
}

// finish sorts and checks the events read.
func (r *reader) finish() {
	t := r.t
	if r.base != 0 && !r.float {
		for i := range t.Ops {
			t.Ops[i].Start += r.base
		}
		for i := range t.Calls {
			t.Calls[i].Start += r.base
		}
		for i := range t.Comms {
			t.Comms[i].Start += r.base
		}
		for i := range t.Syncs {
			t.Syncs[i].Start += r.base
		}
		for i := range t.Steps {
			t.Steps[i].Start += r.base
		}
	}
	r.sortComms()
	slices.SortStableFunc(t.Ops, func(a, b Op) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortStableFunc(t.Calls, func(a, b Call) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Start, b.Start))
	})
	slices.SortStableFunc(t.Syncs, func(a, b Sync) int { return cmp.Compare(a.Start, b.Start) })
	slices.SortStableFunc(t.Steps, func(a, b Step) int { return cmp.Compare(a.Start, b.Start) })
	for i := range t.Groups {
		g := &t.Groups[i]
		if g.Ranks != nil && g.Size == 0 && !g.Cut {
			g.Size = len(g.Ranks)
		}
		if g.Ranks == nil && g.Size == 0 {
			g.Size = t.World
		}
	}
	if r.bad > 0 {
		t.Notes = append(t.Notes,
			fmt.Sprintf("%s: %d events have no time or no duration, or none that can be, and were passed "+
				"over", t.File, r.bad))
	}
}

// sortComms orders calls of process groups and keeps what kernels refer to.
func (r *reader) sortComms() {
	t := r.t
	order := make([]int32, len(t.Comms))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(t.Comms[a].Start, t.Comms[b].Start)
	})
	to := make([]int32, len(order))
	sorted := make([]Comm, len(order))
	for at, from := range order {
		to[from] = int32(at)
		sorted[at] = t.Comms[from]
	}
	t.Comms = sorted
	for i := range t.Ops {
		if c := t.Ops[i].Comm; c > 0 {
			t.Ops[i].Comm = to[c-1] + 1
		}
	}
}
