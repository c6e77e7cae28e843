package job_test

import (
	"context"
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/workload"
)

// TestMessages: equal messages from every rank to every rank are the alltoall, in any
// order, and those to the next rank the operation of nccl-tests, as are several of these;
// others are a job, in which a rank that neither sends nor receives ends at once.
func TestMessages(t *testing.T) {
	m, _ := machine(t, "h200x4-4.xml", 1)
	p := m.Prices()
	ctx := context.Background()
	ranks := []int32{0, 1, 2, 3}
	var all, ring []job.Message
	for r := range int32(4) {
		for s := range int32(4) {
			all = append(all, job.Message{From: 3 - r, To: s, Bytes: 1 << 20})
		}
		ring = append(ring, job.Message{From: r, To: (r + 1) % 4, Bytes: 1 << 20})
	}
	for _, c := range []struct {
		f     coll.Func
		times int
		list  []job.Message
	}{{coll.AllToAll, 1, all}, {coll.SendRecv, 1, ring}, {coll.SendRecv, 3, slices.Repeat(ring, 3)},
		{coll.AllToAll, 2, slices.Repeat(all, 2)}} {
		want, err := p.Collectives(ctx, ranks,
			slices.Repeat([]workload.Call{{Func: c.f, Type: coll.Int8, Count: 1 << 20}}, c.times))
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Messages(ctx, ranks, c.list)
		if err != nil || got[0] != want || got[3] != want {
			t.Errorf("%d times %v: %v, by itself %v: %v", c.times, c.f, got, want, err)
		}
	}
	got, err := p.Messages(ctx, ranks, []job.Message{{From: 2, To: 1, Bytes: 1 << 24}})
	if err != nil || got[0] != 0 || got[3] != 0 || got[1] <= 0 || got[2] <= 0 {
		t.Errorf("one message: %v: %v", got, err)
	}
}

// TestGroupsArePricedTogether: two small collectives of a group share a kernel, and take
// less than one after the other.
func TestGroupsArePricedTogether(t *testing.T) {
	m, _ := machine(t, "h200x4-4.xml", 1)
	p := m.Prices()
	call := workload.Call{Func: coll.AllReduce, Type: coll.Float32, Count: 4096}
	one, err := p.Collectives(context.Background(), []int32{0, 1, 2, 3}, []workload.Call{call})
	if err != nil {
		t.Fatal(err)
	}
	two, err := p.Collectives(context.Background(), []int32{0, 1, 2, 3}, []workload.Call{call, call})
	if err != nil || two <= one || two >= 2*one {
		t.Errorf("one takes %v, two of a group %v: %v", one, two, err)
	}
	// In symmetric windows they are another kernel, of both, too.
	call.InPlace, call.Registered, call.Window = true, true, true
	window, err := p.Collectives(context.Background(), []int32{0, 1, 2, 3}, []workload.Call{call, call})
	if err != nil || window <= 0 || window >= two {
		t.Errorf("two in windows take %v, others %v: %v", window, two, err)
	}
}
