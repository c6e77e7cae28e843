package exectest

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Reference is an executor that moves real numbers op by op in one thread and
// verifies them. Its clock gives every op a nanosecond plus a picosecond a
// byte, each rank's ops one after the other: times to test callers with, not
// to believe.
type Reference struct{}

var _ exec.Executor = Reference{}

// Run implements exec.Executor.
func (Reference) Run(ctx context.Context, job exec.Job, sink trace.Sink) (exec.Result, error) {
	p, err := job.Single("the reference executor")
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	if err := ctx.Err(); err != nil {
		return exec.Result{Wrong: -1}, err
	}
	if err := exec.NeedsNoReducingNetwork(p, "the reference executor"); err != nil {
		return exec.Result{Wrong: -1}, err
	}
	m := &clocked{Data: NewData(p), ctx: ctx, now: make([]units.Time, p.Comm.NRanks),
		sent: map[int32][]stamp{}}
	if sink = trace.OrDiscard(sink); sink != trace.Discard {
		m.sink = sink
		m.tracks = make([]trace.TrackID, p.Comm.NRanks)
		for r := range m.tracks {
			m.tracks[r] = sink.Track(trace.Track{Process: int64(r) + 1, ProcessName: fmt.Sprintf("rank %d",
				r), Thread: 1000 + int64(r), ThreadName: "ops"})
		}
	}
	if err := check.Execute[[]byte](p, m); err != nil {
		return exec.Result{Wrong: -1}, fmt.Errorf("reference executor: %w", err)
	}
	res := exec.Result{Finish: m.now, Events: m.ops}
	for _, t := range m.now {
		res.Elapsed = max(res.Elapsed, t)
	}
	res.AlgBW, res.BusBW = coll.Bandwidth(p.Req.Func, p.Req.Count, p.Req.Type, p.Comm.NRanks, res.Elapsed)
	res.Wrong, _ = m.Wrong()
	return res, nil
}

// stamp is a message in flight: when it was sent, and its number.
type stamp struct {
	at units.Time
	id int64
}

// clocked is Data with a clock per rank.
type clocked struct {
	*Data
	ctx    context.Context
	now    []units.Time
	ops    int64
	flows  int64
	sent   map[int32][]stamp
	sink   trace.Sink // nil: silent
	tracks []trace.TrackID
	ev     trace.Event
}

// Read fails once the run was cancelled.
func (m *clocked) Read(rank int32, at plan.Ref, n units.Bytes) ([]byte, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	return m.Data.Read(rank, at, n)
}

// Ran implements check.Observer.
func (m *clocked) Ran(pr *plan.Program, op *plan.Op) {
	m.ops++
	start := m.now[op.Rank]
	var took []stamp
	for _, id := range op.From {
		if op.Do&plan.HoldRecv == 0 {
			s := m.sent[id][0]
			m.sent[id] = m.sent[id][1:]
			start = max(start, s.at)
			took = append(took, s)
		}
	}
	end := start + units.Nanosecond + units.Time(op.Bytes)
	m.now[op.Rank] = end
	m.emit(trace.Slice, op.Rank, start, end-start, op.Do.String(), 0)
	for _, s := range took {
		m.emit(trace.FlowEnd, op.Rank, start, 0, "message", s.id)
	}
	for _, id := range op.To {
		if op.Do&plan.HoldSend != 0 {
			continue
		}
		m.flows++
		m.sent[id] = append(m.sent[id], stamp{end, m.flows})
		m.emit(trace.FlowStart, op.Rank, start, 0, "message", m.flows)
	}
}

func (m *clocked) emit(ph trace.Phase, rank int32, at, dur units.Time, name string, id int64) {
	if m.sink == nil {
		return
	}
	m.ev = trace.Event{Phase: ph, Track: m.tracks[rank], Start: at, Dur: dur, Cat: "op", Name: name, ID: id}
	m.sink.Emit(&m.ev)
}
