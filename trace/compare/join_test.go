package compare

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
)

// rankFile is what one of two ranks writes of five messages from 0 to 1, 10 us
// apart by rank 0's clock: its own clock is ahead and its trace begins later.
func rankFile(t *testing.T, rank int, ahead, began units.Time) string {
	t.Helper()
	var out bytes.Buffer
	w := chrome.New(&out,
		chrome.Options{Meta: chrome.Meta{Source: "real", Part: &chrome.Part{Rank: rank, Of: 2}}})
	rec := nccl.New(w, nccl.Options{Detail: nccl.DetailStep})
	nic := rec.NIC(nccl.Port{Net: 3, Name: "rxe0"})
	for i := range 5 {
		at := 100*us + units.Time(i)*10*us - began
		s := nccl.Step{Rank: rank, Peer: 1 - rank, Dir: nccl.Dir(rank), Step: int64(i), Bytes: 1000,
			Transport: "NET/IB", Chunk: -1}
		wait := [2]nccl.Wait{nccl.SendWait, nccl.RecvWait}[rank]
		rec.Steps(&s, int64(i)+1, nccl.Phase{Wait: wait, Start: at, End: at + 4*us + units.Time(rank)*us})
		rec.Posted(at, &nccl.WorkRequest{NIC: nic, Rank: rank, Size: 1000})
		qp := rec.QP(nic, rank+1, 1-rank, 0, nccl.QPOut)
		rec.Work(at, at+4*us, &nccl.WorkRequest{NIC: nic, QP: qp, Rank: rank, Opcode: nccl.OpWriteImm,
			Size: 1000})
		rec.Settle(nic, at+4*us)
	}
	rec.Finish(200*us - began)
	w.Clock(int64((1_000_000_000*us+began+ahead)/units.Nanosecond),
		[]chrome.ClockSync{{Rank: rank, OffsetNs: int64(ahead / units.Nanosecond), UncertaintyNs: 500}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func joinFiles(t *testing.T, files ...string) (*Joined, string) {
	t.Helper()
	var heads []*chrome.Info
	var readers []io.Reader
	for _, f := range files {
		h, err := chrome.Head(strings.NewReader(f))
		if err != nil {
			t.Fatal(err)
		}
		heads, readers = append(heads, h), append(readers, strings.NewReader(f))
	}
	if one, err := Parts(heads); !one || err != nil {
		t.Fatal(one, err)
	}
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{Meta: chrome.Meta{Source: "real"}})
	j, err := Join(w, heads, readers, new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := validate.Check(strings.NewReader(out.String()))
	if err != nil || len(rep.Problems) > 0 {
		t.Errorf("%v %+v", err, rep)
	}
	return j, out.String()
}

// Ranks' files with different clocks and starts become one trace: arrows go
// from one to the other, a port that both use counts what both have in flight.
func TestRanksJoin(t *testing.T) {
	files := []string{rankFile(t, 0, 0, 90*us), rankFile(t, 1, 7777*us, 60*us)}
	for _, f := range files {
		if rep, err := validate.Check(strings.NewReader(f)); err != nil || len(rep.Problems) > 0 {
			t.Errorf("half of a run: %v %+v", err, rep)
		}
	}
	j, text := joinFiles(t, files...)
	if j.Arrows != 5 || j.Loose+j.Early+j.Left != 0 || len(j.Clocks) != 2 ||
		j.Clocks[1] != (chrome.ClockSync{Rank: 1, OffsetNs: 7777000, UncertaintyNs: 500}) {
		t.Errorf("%+v", j)
	}
	// Rank 1's trace begins first, at 60 us of rank 0's clock.
	for _, want := range []string{
		`"pid":1000000,"tid":10000,"ts":40.000,"dur":4.000,"cat":"NET","name":"SendWait"`,
		`"pid":1000001,"tid":10064,"ts":40.000,"dur":5.000,"cat":"NET","name":"RecvWait"`,
		`"ts":40.000,"name":"rxe0 in-flight B","args":{"B":2000}`,
		`"ts":84.000,"name":"rxe0 in-flight B","args":{"B":0}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// One rank alone keeps its slices and loses its arrows; a clock that is wrong
// by more than a message takes would turn arrows round, so they are left out.
func TestArrowsThatCannotBe(t *testing.T) {
	if j, _ := joinFiles(t, rankFile(t, 0, 0, 0)); j.Loose != 5 || j.Arrows != 0 {
		t.Errorf("alone: %+v", j)
	}
	late := strings.Replace(rankFile(t, 1, 0, 0), `"offset_ns":0`, `"offset_ns":9000`, 1)
	if j, _ := joinFiles(t, rankFile(t, 0, 0, 0), late); j.Early != 5 || j.Arrows != 0 {
		t.Errorf("wrong clock: %+v", j)
	}
	h0, h1 := &chrome.Info{Part: &chrome.Part{Rank: 0, Of: 2}},
		&chrome.Info{Part: &chrome.Part{Rank: 1, Of: 3}}
	for _, heads := range [][]*chrome.Info{{h0, h0}, {h0, h1}} {
		if _, err := Parts(heads); err == nil {
			t.Errorf("%+v %+v are of one run", heads[0].Part, heads[1].Part)
		}
	}
	if one, err := Parts([]*chrome.Info{h0, {}}); one || err != nil {
		t.Error("a whole trace is a part")
	}
}
