package transform

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/workload"
)

const job = `workload 1
ranks 4
comm tp0 0-1 kind=TP
comm tp1 2-3 kind=TP
comm dp0 0,2 kind=DP
comm dp1 1,3 kind=FSDP
comm pp *
list r0 0
  mark step1
  compute h0 100
  compute 0 10 after=0
  call 0 tp0 all_reduce float sum 8
  mark step2
  compute h0 100 after=2
  call 1 dp0 all_reduce float sum 8 after=1,3
  call 1 pp send float sum 8 peer=3
list r1 1
  mark step1
  call 0 tp0 all_reduce float sum 8
  mark step2
  call 1 dp1 all_gather float sum 9
list r2 2
  mark step1
  call 0 tp1 broadcast float sum 8 root=1
  mark step2
  call 1 dp0 all_reduce float sum 8
list r3 3
  mark step1
  call 0 tp1 broadcast float sum 8 root=1
  mark step2
  call 1 dp1 all_gather float sum 9
  call 1 pp recv float sum 8 peer=0
`

func parse(t *testing.T) *workload.Program {
	t.Helper()
	p, err := workload.Parse(job, "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sound checks a result, and that the program it was made of is as it was.
func sound(t *testing.T, p, q *workload.Program) {
	t.Helper()
	if err := q.Lint(); err != nil {
		t.Fatalf("%v\n%s", err, q.Format())
	}
	if _, err := streams.Run(t.Context(), streams.Apart(q, nil, 0)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(job, p.Format()); diff != "" {
		t.Error(diff)
	}
}

// TestHost: only what the host takes changes.
func TestHost(t *testing.T) {
	p := parse(t)
	q, err := Host(p, 0.4)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, p, q)
	if got := q.Format(); got != strings.ReplaceAll(job, "compute h0 100", "compute h0 40") {
		t.Error(got)
	}
	if _, err := Host(p, -1); err == nil {
		t.Error("a negative factor")
	}
}

// TestBetween: one iteration, without what came before it.
func TestBetween(t *testing.T) {
	p := parse(t)
	q, err := Between(p, "step2", "")
	if err != nil {
		t.Fatal(err)
	}
	sound(t, p, q)
	if s := q.Lists[0].Steps; len(s) != 3 || len(s[0].Deps) != 0 || len(s[1].Deps) != 1 ||
		s[1].Deps[0] != 0 || len(q.Comms) != 3 {
		t.Errorf("%s", q.Format())
	}
	if _, err := Between(p, "step9", ""); err == nil ||
		err.Error() != `list r0 has no mark "step9"; its marks are ["step1" "step2"]` {
		t.Error(err)
	}
}

// TestRanks: groups shrink, and what has no partner left goes.
func TestRanks(t *testing.T) {
	p := parse(t)
	q, dropped, err := Ranks(p, []int32{3, 1})
	if err != nil {
		t.Fatal(err)
	}
	sound(t, p, q)
	if dropped != 3 || q.Ranks() != 2 || len(q.Comms) != 1 || q.Comms[0].Name != "dp1" ||
		cmp.Diff([]int32{1, 0}, q.Comms[0].Ranks) != "" {
		t.Errorf("%d dropped\n%s", dropped, q.Format())
	}
	if _, _, err := Ranks(p, []int32{4}); err == nil {
		t.Error("a rank that is not there")
	}
}

// TestDataParallel: replicas have tensor groups and messages of their own and join in
// data parallel groups; the shards of FSDP shrink.
func TestDataParallel(t *testing.T) {
	p := parse(t)
	q, err := DataParallel(p, 6)
	if err != nil {
		t.Fatal(err)
	}
	sound(t, p, q)
	text := q.Format()
	for _, want := range []string{"ranks 12", "comm dp0 0,2,4,6,8,10 kind=DP", "comm tp1@2 10-11 kind=TP",
		"comm pp@1 4-7 kind=PP", "dp* all_gather float sum 3", "dp* all_reduce float sum 8"} {
		if !strings.Contains(text, strings.ReplaceAll(want, " kind=PP", "")) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	same, err := DataParallel(p, 2)
	if err != nil || same.Format() != job {
		t.Errorf("dp=2 is not the identity: %v", err)
	}
	if _, err := DataParallel(p, 3); err == nil ||
		err.Error() != "data parallel groups of 2 ranks cannot become 3; give a multiple of 2" {
		t.Error(err)
	}
	ddp := workload.One(2, workload.Call{Func: 4, Type: 7, Count: 8})
	if q, err = DataParallel(ddp, 1024); err != nil || len(q.Lists) != 1 || q.Ranks() != 1024 {
		t.Errorf("%v", err)
	}
	tp, err := workload.Parse("workload 1\nranks 2\ncomm t * kind=TP\nlist a 0-1\n"+
		"  call 0 t all_reduce float sum 8\n", "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DataParallel(tp, 4); err == nil || !strings.Contains(err.Error(), "simccl workload gen") {
		t.Error(err)
	}
}

// TestTokensOfWhatIsLeft: an iteration's tokens are known of more replicas, and of one whole iteration; of
// some ranks, and of a part of two iterations that represent one, they are not.
func TestTokensOfWhatIsLeft(t *testing.T) {
	p := parse(t)
	p.Model = workload.Trained{Name: "m", Params: 7, Tokens: 100, FLOPs: 42}
	more, err := DataParallel(p, 4)
	if err != nil || more.Model.Tokens != 200 || more.Model.FLOPs != 42 {
		t.Errorf("%+v, %v", more.Model, err)
	}
	one, err := Between(p, "step1", "")
	if err != nil || one.Model != p.Model {
		t.Errorf("%+v, %v", one.Model, err)
	}
	some, _, err := Ranks(p, []int32{0, 1})
	if err != nil || some.Model != (workload.Trained{}) {
		t.Errorf("%+v, %v", some.Model, err)
	}
	p.Model.Micro = [3]int64{2, 4, 10}
	if one, err = Between(p, "step1", ""); err != nil || one.Model != (workload.Trained{}) {
		t.Errorf("%+v, %v", one.Model, err)
	}
}
