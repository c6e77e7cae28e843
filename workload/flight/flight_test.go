package flight

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job/streams"
)

func truth(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "shared", "workloads", "truth", name))
	if err != nil {
		t.Skip("the recordings beside the checkout are not there: " + err.Error())
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTruth: dumps of all ranks are programs that play.
func TestTruth(t *testing.T) {
	for mode, entries := range map[string]int{"ddp": 2615, "ep": 1658, "pp": 2173, "single": 12, "tp": -1} {
		t.Run(mode, func(t *testing.T) {
			var dumps []*Dump
			for r := range 4 {
				b := truth(t, fmt.Sprintf("%s/fr_rank%d.json.gz", mode, r))
				if !RecogniseJSON(b[:512]) {
					t.Error("is not recognised")
				}
				d, err := ReadJSON(bytes.NewReader(b), fmt.Sprintf("fr_rank%d.json", r))
				if err != nil {
					t.Fatal(err)
				}
				dumps = append(dumps, d)
			}
			if entries >= 0 && len(dumps[0].Entries) != entries || dumps[0].Version != "2.10" ||
				dumps[0].NCCL != "2.28.9" {
				t.Errorf("%d entries, version %s", len(dumps[0].Entries), dumps[0].Version)
			}
			p, notes, err := Program(dumps)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Lint(); err != nil {
				t.Fatal(err)
			}
			r, err := streams.Run(t.Context(), streams.Apart(p, streams.Recorded, 32<<20))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Elapsed(), len(p.Calls), notes)
		})
	}
}

// TestPickle: the pickle says what the JSON of the same rank does.
func TestPickle(t *testing.T) {
	for _, mode := range []string{"ddp", "pp", "single"} {
		b := truth(t, mode+"/fr_rank0.pkl.gz")
		if !RecognisePickle(b) {
			t.Error("is not recognised")
		}
		p, err := ReadPickle(bytes.NewReader(b), "f")
		if err != nil {
			t.Fatal(err)
		}
		j, err := ReadJSON(bytes.NewReader(truth(t, mode+"/fr_rank0.json.gz")), "f")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(j, p); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

const small = `{"version": "2.5", "nccl_version": "2.21.5", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}, "entries": [
{"record_id": 5, "process_group": ["0", "default_pg"], "collective_seq_id": 3, "p2p_seq_id": 0, "op_id": 3, "profiling_name": "nccl:all_reduce", "input_sizes": [[2, 8]], "input_dtypes": ["Float"], "output_sizes": [[2, 8]], "output_dtypes": ["Float"], "state": "completed", "duration_ms": 0.5, "is_p2p": false, "frames": [{"name": "x"}]},
{"record_id": 6, "process_group": ["0", "default_pg"], "collective_seq_id": 3, "p2p_seq_id": 1, "op_id": 4, "profiling_name": "nccl:send 0->1", "input_sizes": [[4]], "input_dtypes": ["Half"], "output_sizes": [[4]], "output_dtypes": ["Half"], "state": "scheduled", "is_p2p": true}]}`

// TestSmall: alignment of buffers that begin at different calls; a lone send.
func TestSmall(t *testing.T) {
	a, err := ReadJSON(strings.NewReader(small), "f")
	if err != nil {
		t.Fatal(err)
	}
	later := strings.NewReplacer("send 0->1", "recv 1<-0", `"collective_seq_id": 3, "p2p_seq_id": 0`,
		`"collective_seq_id": 4, "p2p_seq_id": 0`).Replace(small)
	b, err := ReadJSON(strings.NewReader(later), "f")
	if err != nil {
		t.Fatal(err)
	}
	p, notes, err := Program([]*Dump{a, b})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	if len(p.Lists[0].Steps) != 1 || len(p.Lists[1].Steps) != 1 || p.Calls[0].Func != coll.Send ||
		p.Calls[0].Peer != 1 || p.Calls[1].Peer != 0 || p.Calls[1].Count != 4 || len(notes) != 3 ||
		!strings.Contains(notes[1],
			"group 0: call 4, all_reduce of 16 elements, was issued by others but not by rank 0") {
		t.Errorf("%+v %v", p, notes)
	}
	for _, x := range []struct{ from, to, want string }{
		{`"2.5"`, `"1.0"`, `f: version: version "1.0" is not known; versions 2.x are read`},
		{`"state": "scheduled", `, "", "f: entry 1: has no state"},
		{"send 0->1", "send x", `f: entry 1: "x" names no ranks`},
		{`"Half"], "output`, `"Half"; "output`, "f:3:"},
	} {
		if _, err := ReadJSON(strings.NewReader(strings.Replace(small, x.from, x.to, 1)), "f"); err == nil ||
			!strings.Contains(err.Error(), x.want) {
			t.Errorf("%s → %s: %v, want %s", x.from, x.to, err, x.want)
		}
	}
}

// TestForbidden: nothing of a pickle is called.
func TestForbidden(t *testing.T) {
	for text, want := range map[string]string{
		"\x80\x02cos\nsystem\n(X\x02\x00\x00\x00lstR.": "it names os.system",
		"\x80\x02}R.":  "the stack is empty",
		"\x80\x02}}R.": "it calls a map[string]interface {}",
		"\x80\x02ctorch.jit._pickle\nbuild_intlist\n\x85\x81.": "opcode 0x81",
		"\x80\x02(i":                       "opcode 0x69",
		"\x80\x02]q\x00(h\x00h\x00h\x00e.": "the pickle is no dictionary",
		"\x80\x02X\xff\xff\xff\xff":        "a text of 4294967295 bytes",
		"\x80\x02}h\x07.":                  "value 7 of the memo, which has 0",
	} {
		_, err := ReadPickle(strings.NewReader(text), "f")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
		if errors.Is(err, ErrForbidden) != (strings.Contains(want, "it ") ||
			strings.Contains(want, "opcode")) {
			t.Errorf("%q: forbidden by type: %v", text, err)
		}
	}
}

// TestLists: torch.jit's list of integers, and long integers.
func TestLists(t *testing.T) {
	m := "\x80\x02}(X\x07\x00\x00\x00version\x8c\x032.4X\x07\x00\x00\x00entries]}(X\x0e\x00\x00\x00profil" +
		"ing_name\x8c\x09nccl:sendX\x11\x00\x00\x00collective_seq_id\x8a\x02\xff\xffX\x05\x00\x00\x00stateX" +
		"\x01\x00\x00\x00xX\x0b\x00\x00\x00input_sizes]" +
		"ctorch.jit._pickle\nbuild_intlist\n](K\x02K\x03e\x85Ra" +
		"X\x0c\x00\x00\x00output_sizes]uau."
	d, err := ReadPickle(strings.NewReader(m), "f")
	if err != nil {
		t.Fatal(err)
	}
	if e := d.Entries[0]; e.Seq != -1 || Elements(e.In) != 6 || e.Name != "send" {
		t.Errorf("%+v", e)
	}
}

// FuzzPickle and FuzzJSON: an error, or a dump of which a program can be made.
func FuzzPickle(f *testing.F) {
	f.Add([]byte("\x80\x02}(X\x07\x00\x00\x00version\x8c\x032.4X\x07\x00\x00\x00entries]u."))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := ReadPickle(bytes.NewReader(b), "f"); err == nil {
			if p, _, err := Program([]*Dump{d, d}); err == nil {
				_ = p.Lint()
			}
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ReadJSON(strings.NewReader(text), "f"); err == nil {
			if p, _, err := Program([]*Dump{d, d}); err == nil {
				_ = p.Lint()
			}
		}
	})
}

// TestMismatch: members whose sizes differ are named with their calls, and a member
// that stopped is.
func TestMismatch(t *testing.T) {
	call := func(seq int64, n int64) Entry {
		return Entry{Record: seq, Group: "0", Seq: seq, Name: "all_reduce", In: [][]int64{{n}},
			Out: [][]int64{{n}}, InType: "Float", OutType: "Float", State: "completed"}
	}
	good := &Dump{Entries: []Entry{call(1, 8), call(2, 16), call(3, 32)}}
	wrong := &Dump{Entries: []Entry{call(1, 8), call(2, 17), call(3, 32)}}
	short := &Dump{Entries: []Entry{call(1, 8), call(2, 16)}}
	p, _, err := Program([]*Dump{good, wrong})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err == nil || !strings.Contains(err.Error(), "rank0") ||
		!strings.Contains(err.Error(), "rank1") || !strings.Contains(err.Error(), "17") {
		t.Error(err)
	}
	p, notes, err := Program([]*Dump{good, short, good})
	if err != nil || p.Lint() != nil || len(p.Lists[0].Steps) != 2 {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(notes, "\n"), "group 0: call 3, all_reduce of 32 elements, was "+
		"issued by others but not by rank 1: a job that hangs waits there") {
		t.Errorf("%q", notes)
	}
}
