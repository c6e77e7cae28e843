package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// provable is the largest number of ops of a plan that is proved before it runs; a wrong plan would only be
// noticed as a hang.
const provable = 20_000

// Session is a plan whose connections are set up: it can run many times.
type Session struct {
	e     *Executor
	x     *run
	ranks []int32
	lanes []lane
	pumps []*pump
	shut  func()
}

// Open allocates the buffers and sets up the connections of a plan.
func (e *Executor) Open(ctx context.Context, p *plan.Plan) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := exec.NeedsNoReducingNetwork(p, "CPUs"); err != nil {
		return nil, err
	}
	ranks := e.cfg.Ranks
	if ranks == nil {
		for r := range int32(p.Comm.NRanks) {
			ranks = append(ranks, r)
		}
	}
	if e.cfg.Wire == nil && len(ranks) != p.Comm.NRanks {
		return nil, fmt.Errorf("run %v: %d of %d ranks are here and no wire leads to the others", p.Req.Func,
			len(ranks), p.Comm.NRanks)
	}
	if p.TotalOps() <= provable {
		if err := check.Plan(p); err != nil {
			return nil, err
		}
	}
	k, err := newKernel(p.Req.Type, p.Req.Op)
	if err != nil {
		return nil, err
	}
	x := &run{p: p, k: k, rxs: make([]*fifo, p.NumConns()), txs: make([]*fifo, p.NumConns()),
		mem: map[int32]*memory{}, seed: e.cfg.Seed}
	ctx, x.fail.stop = context.WithCancel(ctx)
	defer x.fail.stop()
	s := &Session{e: e, x: x, ranks: ranks}
	var ends []end
	s.lanes, ends = x.collect(ranks)
	s.pumps, s.shut, err = e.connect(ctx, x, ends)
	if err != nil {
		s.shut()
		return nil, err
	}
	x.crowded = len(s.lanes)+len(s.pumps) > runtime.GOMAXPROCS(0)
	for _, q := range s.pumps {
		q.crowded = x.crowded
	}
	return s, nil
}

// Close closes the connections. With inOrder, it first waits until the other ranks no longer use theirs.
func (s *Session) Close(inOrder bool) error {
	var err error
	if w := s.e.cfg.Wire; inOrder && w != nil && len(s.ranks) < s.x.p.Comm.NRanks {
		if b, ok := w.Exchange(s.ranks[0]).(interface{ Barrier() error }); ok {
			err = b.Barrier()
		}
	}
	s.shut()
	return err
}

// Run executes the plan once on fresh data and verifies every output of the
// local ranks. A nil sink is trace.Discard.
func (s *Session) Run(ctx context.Context, sink trace.Sink) (exec.Result, error) {
	sink = trace.OrDiscard(sink)
	s.watch(sink) // first: other processes may send before this one is ready
	for _, r := range s.ranks {
		s.x.mem[r] = newMemory(s.x.p, r, s.x.k, s.e.cfg.Seed)
	}
	if s.x.log != nil {
		s.x.log.began = time.Now()
	}
	elapsed, err := s.drive(ctx, 1)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	res := s.result(elapsed)
	s.trace(sink, &res)
	return res, nil
}

// Iterate executes the plan n times in a row without checking the data and returns the total time.
func (s *Session) Iterate(ctx context.Context, n int) (units.Time, error) {
	for _, r := range s.ranks {
		if s.x.mem[r] == nil {
			s.x.mem[r] = newMemory(s.x.p, r, s.x.k, s.e.cfg.Seed)
		}
	}
	s.watch(trace.Discard)
	d, err := s.drive(ctx, n)
	return units.Time(d.Nanoseconds()) * units.Nanosecond, err
}

// drive starts all programs and pumps and waits for them.
func (s *Session) drive(ctx context.Context, times int) (time.Duration, error) {
	limit := s.e.cfg.Timeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no end after %v: %w", limit,
		context.DeadlineExceeded))
	defer cancel()
	x := s.x
	ctx, x.fail.stop = context.WithCancel(ctx)
	defer x.fail.stop()
	began := time.Now()
	var work, moving sync.WaitGroup
	for _, q := range s.pumps {
		q.finish.Store(false)
		moving.Add(1)
		go func() {
			defer moving.Done()
			if err := q.loop(ctx); err != nil {
				x.fail.set(err)
			}
		}()
	}
	for i := range s.lanes {
		work.Add(1)
		go func() {
			defer work.Done()
			for range times {
				if err := x.runLane(ctx, &s.lanes[i]); err != nil {
					x.fail.set(err)
					return
				}
			}
		}()
	}
	work.Wait()
	elapsed := time.Since(began)
	for _, q := range s.pumps {
		q.finish.Store(true) // programs are done; the last sends may be in flight
	}
	moving.Wait()
	if err := x.fail.get(); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errors.Join(err, s.stuck())
		}
		return 0, fmt.Errorf("%v over %d ranks: %w", x.p.Req.Func, x.p.Comm.NRanks, err)
	}
	return elapsed, nil
}

// stuck returns an error that says what every local rank's connections wait for.
func (s *Session) stuck() error {
	var all []error
	for _, q := range s.pumps {
		for _, o := range q.sends {
			switch {
			case o.sent+o.steps <= o.f.posted.Load():
				all = append(all,
					fmt.Errorf("rank %d, channel %d: no clear-to-send from rank %d for message %d", q.rank,
						o.conn.Channel, o.conn.Dst, o.sent/o.steps))
			case len(o.wait) > 0:
				all = append(all,
					fmt.Errorf("rank %d, channel %d: %d messages to rank %d are not acknowledged", q.rank,
						o.conn.Channel, len(o.wait), o.conn.Dst))
			}
		}
	}
	slices.SortFunc(all, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

func (x *run) runLane(ctx context.Context, l *lane) error {
	began := x.log.now()
	var terms nccl.Terms
	for _, phase := range l.phases {
		errs := make([]error, len(phase))
		rs := make([]*runner, len(phase))
		var wg sync.WaitGroup
		for i := range phase {
			wg.Add(1)
			go func() {
				defer wg.Done()
				rs[i] = &runner{x: x, pr: phase[i], mem: x.mem[phase[i].Rank], ctx: ctx}
				errs[i] = rs[i].execute()
			}()
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		t := last(rs)
		terms.Add(&t)
	}
	if x.log != nil {
		x.log.kernel(l, began, &terms)
	}
	return nil
}

// result verifies the outputs and returns the result.
func (s *Session) result(elapsed time.Duration) exec.Result {
	x := s.x
	res := exec.Result{Elapsed: max(units.Time(elapsed.Nanoseconds()), 1) * units.Nanosecond, Wrong: -1}
	res.Finish = make([]units.Time, x.p.Comm.NRanks)
	for _, r := range s.ranks {
		res.Finish[r] = res.Elapsed
	}
	if x.p.DataDefined() {
		res.Wrong = 0
		for _, r := range s.ranks {
			res.Wrong += x.verify(r)
		}
	}
	req := &x.p.Req
	res.AlgBW, res.BusBW = coll.Bandwidth(req.Func, req.Count, req.Type, x.p.Comm.NRanks, res.Elapsed)
	return res
}
