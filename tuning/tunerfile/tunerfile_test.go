package tunerfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/tuning"
)

// TestRowsAreReadAsThePluginReadsThem: comments and empty lines count as lines; an empty field is none; words
// that are not known, sizes and numbers that are none have what the plugin makes of them, and a problem with
// their place (ext-tuner/example/plugin.c).
func TestRowsAreReadAsThePluginReadsThem(t *testing.T) {
	const row = "allreduce,1,2,tree,ll,3,4,5"
	is := tuning.Row{Func: coll.AllReduce, Min: 1, Max: 2, Algo: coll.Tree, Proto: coll.LL, Channels: 3,
		Nodes: 4,
		Ranks: 5, Pipe: -1, Registered: -1}
	with := func(change func(*tuning.Row)) *tuning.Row {
		r := is
		change(&r)
		return &r
	}
	same := with(func(*tuning.Row) {})
	for _, c := range []struct {
		text    string
		want    *tuning.Row
		problem string // its place and a word of it
	}{
		{row, same, ""}, {" allreduce , 1,2\t,tree,ll,3,4,5\r", same, ""},
		{row + ",6", with(func(r *tuning.Row) { r.Pipe = 6 }), ""},
		{row + ",6,1", with(func(r *tuning.Row) { r.Pipe, r.Registered = 6, 1 }), ""},
		{row + ",6,1,9", with(func(r *tuning.Row) { r.Pipe, r.Registered = 6, 1 }),
			"1:33: more than 10 fields"},
		{"allreduce,1,2,tree,ll,3,4", nil, "1:1: 7 fields: the plugin drops the row"},
		{"allreduce,,1,2,tree,ll,3,4,5", same, "1:11: an empty field"},
		{"allgather,1,2,pat,ll128,-1,4,5", with(func(r *tuning.Row) {
			r.Func, r.Algo, r.Proto, r.Channels = coll.AllGather, coll.PAT, coll.LL128, -1
		}), ""},
		{"gather,1,2,tree,ll,3,4,5", same, `1:1: "gather": the plugin does not know it and takes allreduce`},
		{"allreduce,1,2, star,ll,3,4,5", with(func(r *tuning.Row) { r.Algo = coll.Ring }), `1:16: "star"`},
		{"allreduce,1,2,tree,fast,3,4,5", with(func(r *tuning.Row) { r.Proto = coll.Simple }),
			`takes simple; write one of ll, ll128, simple`},
		{"allreduce,1K,2,tree,ll,3,4,5", same, `1:11: "1K" is no number of bytes: the plugin reads 1`},
		{"allreduce,x,2,tree,ll,3,4,5", with(func(r *tuning.Row) { r.Min = 0 }), `the plugin reads 0`},
		{"allreduce,1,99999999999999999999,tree,ll,3,4,5", with(func(r *tuning.Row) { r.Max = 1<<64 - 1 }),
			""},
		{"allreduce,3,2,tree,ll,3,4,5", with(func(r *tuning.Row) { r.Min = 3 }), "1:11: the least size, 3"},
		{"allreduce,2,2,tree,ll,3,4,5", with(func(r *tuning.Row) { r.Min = 2 }), ""},
		{"allreduce,1,2,tree,ll,3x,4,5", same, `1:23: "3x" is no number: the plugin reads 3`},
		{"allreduce,1,2,tree,ll,x,4,5", with(func(r *tuning.Row) { r.Channels = 0 }), `reads 0`},
		{"allreduce,1,2,tree,ll,+3,4,5", same, ""}, {"", nil, ""}, {"# allreduce", nil, ""},
		{row + "," + strings.Repeat(" ", 254-len(row)-2) + "7", with(func(r *tuning.Row) { r.Pipe = 7 }), ""},
		{row + "," + strings.Repeat(" ", 255-len(row)-2) + "7", nil,
			"1:255: the plugin reads lines of up to 254"},
	} {
		f := Parse([]byte(c.text+"\n"), "t.csv")
		switch {
		case len(f.Lines) > 1 || (len(f.Lines) == 1) != (c.want != nil):
			t.Errorf("%q: %d rows", c.text, len(f.Lines))
		case c.want != nil && (f.Lines[0].Row != *c.want || f.Lines[0].Number != 1):
			t.Errorf("%q: %+v, want %+v", c.text, f.Lines[0].Row, *c.want)
		}
		if said := fmt.Sprint(f.Problems); (c.problem == "") != (len(f.Problems) == 0) ||
			!strings.Contains(said, c.problem) || c.problem != "" && !strings.Contains(said, "t.csv:1:") {
			t.Errorf("%q: %s, want %s", c.text, said, c.problem)
		}
	}
	if f := Parse([]byte("# x\n\n"+row+"\n"+row), "t.csv"); len(f.Lines) != 2 || f.Lines[1].Number != 4 ||
		f.Plugin().Channels != 1 || len(f.Plugin().Rows) != 2 || f.Plugin().Rows[1] != is {
		t.Errorf("%+v", f)
	}
}

// TestRowsAreWrittenAsTheyAreRead: all words of the plugin.
func TestRowsAreWrittenAsTheyAreRead(t *testing.T) {
	var rows []tuning.Row
	for _, f := range collectives {
		for _, a := range algorithms {
			for i, p := range protocols {
				rows = append(rows, tuning.Row{Func: f.is, Min: uint64(i), Max: 1 << 40, Algo: a.is,
					Proto:    p.is,
					Channels: -1, Nodes: i, Ranks: 8, Pipe: i, Registered: i % 2})
			}
		}
	}
	f := Parse(Write(rows, "a", "b"), "t.csv")
	if len(f.Problems) > 0 || len(f.Lines) != len(rows) || f.Lines[0].Number != 4 {
		t.Fatalf("%d rows, want %d: %v", len(f.Lines), len(rows), f.Problems)
	}
	for i := range rows {
		if f.Lines[i].Row != rows[i] {
			t.Errorf("%+v becomes %+v", rows[i], f.Lines[i].Row)
		}
	}
}

// TestTheExampleAloneIsRead: other plugins have files of their own.
func TestTheExampleAloneIsRead(t *testing.T) {
	wrong := errors.New("no such file")
	read := func(name string) ([]byte, error) {
		if name == "absent" {
			return nil, wrong
		}
		return []byte("allreduce,1,2,tree,ll,3,4,5\nallreduce\n"), nil
	}
	for _, c := range []struct {
		plugin, file string
		rows         int // -1 none
		err          error
	}{
		{"example", "a", 1, nil}, {"/opt/example", "a", 1, nil}, {"/lib/libnccl-tuner-example.so", "a", 1,
			nil},
		{"libnccl-tuner-example2.so", "a", -1, nil}, {"ofi", "a", -1, nil}, {"", "a", -1, nil},
		{"example", "", -1, nil}, {"example", "absent", -1, wrong},
	} {
		var warned []error
		p, data, err := Load(c.plugin, c.file, read, func(err error) { warned = append(warned, err) })
		if !errors.Is(err, c.err) || (p != nil) != (c.rows >= 0) || p != nil && (len(p.Rows) != c.rows ||
			len(data) == 0 || len(warned) != 1) {
			t.Errorf("%q %q: %+v, %v, warned %v", c.plugin, c.file, p, err, warned)
		}
	}
}
