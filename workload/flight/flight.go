// Package flight reads the dumps of PyTorch's Flight Recorder: the process-group calls of one rank, as JSON
// or as a pickle. Of pickles it accepts only what such dumps contain.
//
// A dump has no computations and, unless timing was enabled, no times: discovery times are those of a
// watchdog that polls every 100 ms.
//
// What it must not know: files, machines.
//
// Source: PyTorch 2.5 to 2.11, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp; versions 2.x of the
// format.
package flight

import (
	"fmt"
	"strconv"
	"strings"
)

// Dump is the parsed dump of one rank: its process groups, and their last calls as the recorder's ring buffer
// had them.
type Dump struct {
	File    string
	Version string
	NCCL    string // version of the library
	Groups  []Group
	Entries []Entry
}

// Group is a process group of torch.distributed with its name and members.
type Group struct {
	Name  string
	Ranks []int32
}

// Entry is a recorded call of a process group.
type Entry struct {
	Record     int64
	Group      string // name
	Desc       string
	Seq        int64  // of collectives
	Name       string // all_reduce, send, recv, coalesced … without nccl:
	Src, Dst   int32  // of send and recv, ranks in the group
	P2P        bool
	In, Out    [][]int64 // shapes of tensors
	InType     string
	OutType    string
	State      string
	Created    int64   // ns
	DurationMs float64 // 0 where timing was off
}

// Elements returns the product of a call's tensor shapes, summed over its tensors.
func Elements(shapes [][]int64) int64 {
	sum := int64(0)
	for _, s := range shapes {
		n := int64(1)
		for _, d := range s {
			if d < 0 || d > 1<<40 || n > 1<<40 {
				return 0
			}
			n *= d
		}
		sum += n
	}
	return sum
}

// FormatError is a value that is not what a dump has there.
type FormatError struct {
	File    string
	Where   string // entry 12
	Problem string
	Hint    string
}

// Error states the position, the problem and the remedy.
func (e *FormatError) Error() string {
	s := e.File + ": " + e.Where + ": " + e.Problem
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// tree is a value of a dump: nil, bool, int64, float64, string, []any, map[string]any.
type tree = map[string]any

// dump converts the decoded values of a file to a Dump.
func dump(file string, t tree) (*Dump, error) {
	d := &Dump{File: file}
	d.Version, _ = t["version"].(string)
	if !strings.HasPrefix(d.Version, "2.") {
		return nil, &FormatError{file, "version", fmt.Sprintf("version %q is not known", d.Version),
			"versions 2.x are read"}
	}
	d.NCCL, _ = t["comm_lib_version"].(string)
	if d.NCCL == "" {
		d.NCCL, _ = t["nccl_version"].(string)
	}
	if pg, ok := t["pg_config"].(tree); ok {
		d.Groups = groups(pg)
	}
	list, _ := t["entries"].([]any) // absent when there are none
	for i, x := range list {
		e, ok := x.(tree)
		if !ok {
			return nil, &FormatError{file, fmt.Sprintf("entry %d", i), "is no dictionary", ""}
		}
		entry, problem := newEntry(e)
		if problem != "" {
			return nil, &FormatError{file, fmt.Sprintf("entry %d", i), problem, ""}
		}
		d.Entries = append(d.Entries, entry)
	}
	return d, nil
}

func groups(pg tree) (out []Group) {
	for _, name := range sorted(pg) {
		g, _ := pg[name].(tree)
		x := Group{Name: name}
		switch r := g["ranks"].(type) {
		case string: // "[0, 1]"
			for part := range strings.SplitSeq(strings.Trim(r, "[] "), ",") {
				if n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32); err == nil {
					x.Ranks = append(x.Ranks, int32(n))
				}
			}
		case []any:
			for _, v := range r {
				x.Ranks = append(x.Ranks, int32(integer(v)))
			}
		}
		out = append(out, x)
	}
	return out
}

// newEntry converts an entry's values; problem names a missing or invalid member.
func newEntry(e tree) (x Entry, problem string) {
	name, ok := e["profiling_name"].(string)
	if !ok {
		return x, "has no profiling_name"
	}
	for _, key := range []string{"collective_seq_id", "state", "input_sizes", "output_sizes"} {
		if _, ok := e[key]; !ok {
			return x, "has no " + key
		}
	}
	x.Record, x.Seq = integer(e["record_id"]), integer(e["collective_seq_id"])
	x.Created = integer(e["time_created_ns"])
	x.State, _ = e["state"].(string)
	x.P2P, _ = e["is_p2p"].(bool)
	x.DurationMs, _ = e["duration_ms"].(float64)
	if pg, ok := e["process_group"].([]any); ok && len(pg) == 2 {
		x.Group, _ = pg[0].(string)
		x.Desc, _ = pg[1].(string)
	}
	x.In, x.Out = shapes(e["input_sizes"]), shapes(e["output_sizes"])
	x.InType, x.OutType = first(e["input_dtypes"]), first(e["output_dtypes"])
	if _, rest, found := strings.Cut(name, ":"); found {
		name = rest
	}
	// send 1->2, recv 3<-0: the first is the rank itself.
	if verb, rest, found := strings.Cut(name, " "); found {
		name = verb
		a, b, ok := strings.Cut(rest, "->")
		if !ok {
			b, a, ok = strings.Cut(rest, "<-")
		}
		src, err1 := strconv.ParseInt(a, 10, 32)
		dst, err2 := strconv.ParseInt(b, 10, 32)
		if !ok || err1 != nil || err2 != nil || src < 0 || dst < 0 {
			return x, fmt.Sprintf("%q names no ranks", rest)
		}
		x.Src, x.Dst = int32(src), int32(dst)
	}
	x.Name = name
	return x, ""
}

func integer(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		if n > -1<<62 && n < 1<<62 {
			return int64(n)
		}
	}
	return 0
}

func shapes(v any) (out [][]int64) {
	list, _ := v.([]any)
	for _, s := range list {
		dims, _ := s.([]any)
		shape := []int64{}
		for _, d := range dims {
			shape = append(shape, integer(d))
		}
		out = append(out, shape)
	}
	return out
}

func first(v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		s, _ := list[0].(string)
		return s
	}
	return ""
}
