package intercept_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload/calls"
	"pgregory.net/rapid"
)

// scripted is a call of script.c.
type scripted struct {
	f            coll.Func
	comm, stream int
	count        int
	typ          coll.DataType
	op           coll.RedOp
	root         int
}

// scripts are groups of calls of 8 ranks.
func scripts() *rapid.Generator[[][]scripted] {
	one := rapid.Custom(func(t *rapid.T) scripted {
		s := scripted{f: coll.Func(rapid.IntRange(0, 8).Draw(t, "function")),
			comm:   rapid.IntRange(0, 1).Draw(t, "communicator"),
			stream: rapid.IntRange(0, 1).Draw(t, "stream"), count: rapid.IntRange(1, 300000).Draw(t, "count")}
		s.typ = rapid.SampledFrom([]coll.DataType{coll.Int8, coll.Int32, coll.Float16, coll.Float32,
			coll.Float64}).Draw(t, "type")
		if s.f.Reduces() {
			s.op = rapid.SampledFrom(coll.RedOps()[:4]).Draw(t, "reduction")
		}
		if s.f.Rooted() {
			s.root = rapid.IntRange(0, 3).Draw(t, "root")
		}
		return s
	})
	return rapid.SliceOfN(rapid.SliceOfN(one, 1, 4), 12, 12)
}

// lines are the calls of a rank as it makes them: group, communicator of the record, stream in the
// order of use, and what is called.
func lines(groups [][]scripted, rank int) string {
	var b strings.Builder
	streams := map[int]int{}
	for g, list := range groups {
		for _, s := range list {
			n, ok := streams[s.stream]
			if !ok {
				n = len(streams)
				streams[s.stream] = n
			}
			size, me, comm := 8, rank, 0
			if s.comm == 1 {
				size, me, comm = 4, 3-rank/2, 1+rank%2
			}
			if s.f == 5 {
				fmt.Fprintf(&b, "%d %d %d send %d %v %d\n%d %d %d recv %d %v %d\n", g, comm, n, s.count,
					s.typ, (me+1)%size, g, comm, n, s.count, s.typ, (me+size-1)%size)
				continue
			}
			fmt.Fprintf(&b, "%d %d %d %s %d %v %d %v\n", g, comm, n, s.f.TestName(), s.count, s.typ, s.root,
				s.op)
		}
	}
	return b.String()
}

// recorded are the same of a record.
func recorded(list []calls.Event) string {
	var b strings.Builder
	groups := map[int]int{}
	for _, e := range list {
		if e.Kind != calls.Call {
			continue
		}
		g, ok := groups[e.Group]
		if !ok {
			g = len(groups)
			groups[e.Group] = g
		}
		switch e.Func {
		case coll.Send:
			fmt.Fprintf(&b, "%d %d %d send %d %v %d\n", g, e.Comm, e.Stream, e.Count, e.Type, e.Root)
		case coll.Recv:
			fmt.Fprintf(&b, "%d %d %d recv %d %v %d\n", g, e.Comm, e.Stream, e.Count, e.Type, e.Root)
		default:
			fmt.Fprintf(&b, "%d %d %d %s %d %v %d %v\n", g, e.Comm, e.Stream, e.Func.TestName(), e.Count,
				e.Type, e.Root, e.Op)
		}
	}
	return b.String()
}

// TestScripts: random groups of calls are recorded on every rank as they were called,
// and the virtual times do not depend on how long processes really wait.
func TestScripts(t *testing.T) {
	m, script := two(t), example(t, "script")
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		groups := scripts().Example(seed + 1)
		var text strings.Builder
		for _, list := range groups {
			for _, s := range list {
				fmt.Fprintln(&text, int(s.f), s.comm, s.stream, s.count, int(s.typ), int(s.op), s.root)
			}
			text.WriteString("end\n")
		}
		file := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		first, record := "", ""
		for delays := range 2 {
			r := intercepted(t, m, nil, script, file, fmt.Sprint(delays))
			r.want(t, first)
			var b bytes.Buffer
			if err := r.Record.Write(&b); err != nil {
				t.Fatal(err)
			}
			if delays > 0 && b.String() != record {
				t.Errorf("seed %d: the record depends on delays", seed+1)
			}
			first, record = r.out, b.String()
			for rank, list := range r.Record.Events {
				if got, want := recorded(list), lines(groups, rank); got != want {
					t.Fatalf("seed %d: rank %d has recorded\n%s\nand called\n%s", seed+1, rank, got, want)
				}
			}
		}
	}
}
