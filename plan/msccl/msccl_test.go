package msccl

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

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan/mscclpp"
	"github.com/simccl/simccl/plan/schedule"
)

// proveAt checks a schedule with so many elements in each chunk.
func proveAt(s *schedule.Schedule, each int64) error {
	r, err := s.Request(s.Unit()*each, coll.Float32)
	if err != nil {
		return err
	}
	return s.Check(s.Alone(), r)
}

// TestSamples: the public schedules are right, at a size of one step and at one of
// several rounds.
func TestSamples(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "workloads", "samples", "msccl_xml")
	if root := os.Getenv("SIMCCL_SHARED"); root != "" {
		dir = filepath.Join(root, "workloads", "samples", "msccl_xml")
	}
	list, _ := filepath.Glob(filepath.Join(dir, "*.xml*"))
	if len(list) == 0 {
		t.Skip("shared/workloads/samples/msccl_xml is not there")
	}
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err == nil && strings.HasSuffix(name, ".gz") {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
				text, err = io.ReadAll(z)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(text, filepath.Base(name))
		if err != nil {
			t.Error(err)
			continue
		}
		if err := proveAt(s, 3); err != nil {
			t.Error(err)
		}
	}
}

func own(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "schedules", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOwn: the project's schedules are proven, with chunks below and above a step.
func TestOwn(t *testing.T) {
	for _, name := range []string{"allpairs4.xml", "hier2x2.xml"} {
		s, err := Read([]byte(own(t, name)), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range []int64{1, 1000, 1 << 19} {
			if err := proveAt(s, each); err != nil {
				t.Errorf("%d elements a chunk: %v", each, err)
			}
		}
	}
}

// TestFaults: each damage of a right schedule is found, with its element.
func TestFaults(t *testing.T) {
	right := own(t, "allpairs4.xml")
	for _, c := range []struct{ name, old, now, want string }{
		{"a chunk is sent from the wrong place", `type="s" srcbuf="i" srcoff="0"`,
			`type="s" srcbuf="i" srcoff="4"`, "which has 4"},
		{"a dependency is missing", `depid="3" deps="1"`, `depid="-1" deps="-1"`, "gpu 0 tb 0 step 3: "},
		{"a step is unknown", `type="re"`, `type="ree"`, `type="ree": write`},
		{"a receive lands elsewhere", `type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0"`,
			`type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="4"`, "gpu 0 tb"},
		{"a peer is missing", `send="1"`, `send="-1"`, "has send=-1"},
		{"a rank does not exist", `send="1"`, `send="4"`, "from -1 to 3"},
		{"a reduction is missing", `type="re"`, `type="nop"`, "holds byte"},
	} {
		if !strings.Contains(right, c.old) {
			t.Fatalf("%s: %s is not in the schedule", c.name, c.old)
		}
		s, err := Read([]byte(strings.Replace(right, c.old, c.now, 1)), "x.xml")
		if err == nil {
			err = proveAt(s, 3)
		}
		var e *schedule.Error
		if !errors.As(err, &e) || e.Pos.Line == 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a place and %q", c.name, err, c.want)
		}
	}
}

// TestRound: what a schedule says as XML is read again as the same steps, and makes the
// same plan.
func TestRound(t *testing.T) {
	for _, name := range []string{"hier2x2.xml", "allpairs4.xml", "ring2.xml", "packets2.json",
		"packets4.json"} {
		read := Read
		if strings.HasSuffix(name, ".json") {
			read = mscclpp.Read
		}
		from, err := read([]byte(own(t, name)), name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := TwoSided(from)
		if err != nil {
			t.Fatal(err)
		}
		text := s.XML()
		again, err := Read(text, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := proveAt(again, 3); err != nil {
			t.Error(err)
		}
		if same, err := TwoSided(again); err != nil || !bytes.Equal(same.XML(), text) {
			t.Errorf("%s: written and read again it is another", name)
		}
		r, err := again.Request(again.Unit()*4, coll.Float32)
		if err != nil {
			t.Fatal(err)
		}
		p, err := again.Plan(again.Alone(), r)
		if err != nil {
			t.Fatal(err)
		}
		q, err := FromPlan(p, again.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := proveAt(q.Schedule, 3); err != nil {
			t.Error(err)
		}
		if sends(s) != sends(q) {
			t.Errorf("%s: %d chunks are sent, said again %d", name, sends(s), sends(q))
		}
	}
	pulled, err := mscclpp.Read([]byte(own(t, "pulled2.json")), "pulled2.json")
	if err != nil {
		t.Fatal(err)
	}
	var cannot *CannotSayError
	if _, err := TwoSided(pulled); !errors.As(err, &cannot) || !strings.Contains(err.Error(),
		"only orders") {
		t.Errorf("a plan of signals alone: %v", err)
	}
}

// sends counts the chunks that all blocks send.
func sends(s *Algo) (n int) {
	for _, g := range s.Blocks {
		for _, b := range g {
			for _, st := range b.Steps {
				if st.Kind.sends() {
					n += st.Count * 1000 / s.Chunks
				}
			}
		}
	}
	return n
}

// FuzzRead: no text makes the reader or the proof panic, and what is refused is an
// *Error.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"allpairs4.xml", "hier2x2.xml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "schedules", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(
		fmt.Sprintf(
			`<algo coll="allreduce" nchannels="1" nchunksperloop="%d" ngpus="2"><gpu id="0" i_chunks="1" o_chunks="1" s_chunks="0"/></algo>`, schedule.MaxChunks)))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Read(text, "f.xml")
		var e *schedule.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		if err != nil || len(s.GPUs) > 8 || s.Chunks > 64 || len(text) > 1<<14 {
			return
		}
		_ = proveAt(s, 1)
	})
}
