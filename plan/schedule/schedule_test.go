package schedule_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/msccl"
	"github.com/simccl/simccl/plan/schedule"
)

// TestChunksOfOperations: the buffers of an operation have its chunks, or those of a rank; its unit is the
// least count that they divide.
func TestChunksOfOperations(t *testing.T) {
	for word, want := range map[string]struct {
		in, out int
		unit    int64
	}{"allreduce": {8, 8, 8}, "broadcast": {8, 8, 8}, "reduce": {8, 8, 8}, "sendrecv": {8, 8, 8},
		"allgather": {2, 8, 2}, "gather": {2, 8, 2}, "reducescatter": {8, 2, 2}, "scatter": {8, 2, 2},
		"alltoall": {8, 8, 2}, "reduce_scatter": {8, 2, 2}} {
		f, known := schedule.ParseFunc(word)
		s := &schedule.Schedule{Func: f, Chunks: 8, GPUs: make([]schedule.GPU, 4), File: "f"}
		s.GPUs[3].Scratch = 5
		if in, out := s.ChunksOf(0, 'i'), s.ChunksOf(0, 'o'); !known || in != want.in || out != want.out ||
			s.Unit() != want.unit || s.ChunksOf(3, 's') != 5 || s.ChunksOf(0, 's') != 0 {
			t.Errorf("%s: %d chunks in, %d out, unit %d; want %+v", word, in, out, s.Unit(), want)
		}
		for _, bad := range []int64{0, -1, want.unit + 1, 2*want.unit - 1} {
			if _, err := s.Request(bad, coll.Float32); err == nil || !strings.Contains(err.Error(),
				"take a multiple of") {
				t.Errorf("%s: %d elements: %v", word, bad, err)
			}
		}
		if r, err := s.Request(3*want.unit, coll.Float32); err != nil || r.Count != 3*want.unit ||
			!r.InPlace {
			t.Errorf("%s: %+v, %v", word, r, err)
		}
	}
	if _, known := schedule.ParseFunc("all_gather"); known {
		t.Error("all_gather is no word of a schedule")
	}
}

// racing is an all_gather of two GPUs. On GPU 1 block 1 copies a chunk to o 0, which block 0 overwrites by
// what it receives once step dep of block 1 is done, then its own to o 1, and reads last in its last step.
func racing(dep, last string) string {
	step := func(n, kind, src, dst, dep string) string {
		block := "1"
		if dep == "" {
			block, dep = "-1", "-1"
		}
		return fmt.Sprintf(`<step s=%q type=%q srcbuf=%q srcoff=%q dstbuf=%q dstoff=%q cnt="1" depid=%q deps=%q `+
			`hasdep="1"/>`+"\n", n, kind, src[:1], src[1:], dst[:1], dst[1:], block, dep)
	}
	block := func(id, peer, steps string) string {
		return fmt.Sprintf("<tb id=%q send=%q recv=%q chan=%q>\n%s</tb>\n", id, peer, peer, id, steps)
	}
	gpu := func(id, blocks string) string {
		return fmt.Sprintf(`<gpu id=%q i_chunks="1" o_chunks="2" s_chunks="1">`+"\n%s</gpu>\n", id, blocks)
	}
	return `<algo name="x" proto="Simple" nchannels="2" nchunksperloop="2" ngpus="2" coll="allgather" ` +
		`inplace="0" outofplace="1" minBytes="0" maxBytes="0">` + "\n" +
		gpu("0", block("0", "1", step("0", "s", "i0", "o0", "")+step("1", "r", "i0", "o1", ""))+
			block("1", "-1", step("0", "cpy", "i0", "o0", ""))) +
		gpu("1", block("0", "0", step("0", "s", "i0", "o1", "")+step("1", "r", "i0", "o0", dep))+
			block("1", "-1", step("0", "cpy", "i0", "o0", "")+step("1", "cpy", "i0", "o1", "")+
				step("2", "cpy", last, "s0", ""))) + "</algo>"
}

// TestRaces: of two steps that touch a chunk, one of which writes, one waits for the other; two that read
// need not.
func TestRaces(t *testing.T) {
	for _, c := range []struct{ name, dep, last, want string }{
		{"after the last", "2", "o0", ""},
		{"what is read is another chunk", "0", "o1", ""},
		{"two read the input", "0", "i0", ""},
		{"before one that reads", "0", "o0",
			"x.xml:14:1: gpu 1 tb 0 step 1: touches chunk 0 of o like tb 1 step 2, and nothing orders"},
		{"before one that writes", "", "i0",
			"gpu 1 tb 1 step 0: touches chunk 0 of o like tb 0 step 1, and nothing orders"},
	} {
		s, err := msccl.Read([]byte(racing(c.dep, c.last)), "x.xml")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r, err := s.Request(s.Unit()*4, coll.Float32)
		if err != nil {
			t.Fatal(err)
		}
		if err = s.Check(s.Alone(), r); (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
