// Package host runs a plan's programs on the CPU, in host memory: every rank's
// thread groups are goroutines, connections are FIFOs of steps as on a GPU,
// and between ranks of different processes (or where asked for, of one) steps
// travel over a transport.Net, pumped by one progress loop per rank like
// NCCL's proxy. It is how verbs and sockets are proven: results are compared
// with the reference to the last element.
package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// Exchange carries the handles of connections between ranks; bootstrap.Comm is
// one, and InProcess another.
type Exchange interface {
	Send(peer int, tag uint32, data []byte) error
	Recv(peer int, tag uint32) ([]byte, error)
}

// Wire says over which device a rank reaches others, and how it meets them.
// Without a Wire all ranks are of this process and share memory.
type Wire struct {
	Net      transport.Net
	Device   func(rank int32) int
	Exchange func(rank int32) Exchange
	// Memory gives FIFO memory that the net can register; nil takes Go memory.
	Memory func(n int) ([]byte, func(), error)
}

// Config says what this process runs.
type Config struct {
	Ranks []int32 // local ranks; nil means all
	Wire  *Wire
	Seed  uint64 // of the input data
	// Timeout bounds a run, default 2 minutes.
	Timeout time.Duration
}

// Executor implements exec.Executor.
type Executor struct{ cfg Config }

// New makes an executor.
func New(cfg Config) *Executor {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Minute
	}
	return &Executor{cfg}
}

// run is one operation under way.
type run struct {
	p    *plan.Plan
	k    *kernel
	rxs  []*fifo // by connection id, nil where no local program receives
	txs  []*fifo
	mem  map[int32]*memory
	seed uint64
	fail failure
}

func (x *run) rx(id int32) *fifo { return x.rxs[id] }
func (x *run) tx(id int32) *fifo { return x.txs[id] }

// Run executes the plan once on fresh data and verifies every output of the
// local ranks; Result.Wrong counts elements that differ.
func (e *Executor) Run(ctx context.Context, p *plan.Plan, sink trace.Sink) (exec.Result, error) {
	ranks := e.cfg.Ranks
	if ranks == nil {
		for r := range int32(p.Comm.NRanks) {
			ranks = append(ranks, r)
		}
	}
	if e.cfg.Wire == nil && len(ranks) != p.Comm.NRanks {
		return exec.Result{}, fmt.Errorf("run %v: %d of %d ranks are here and no wire leads to the others", p.Req.Func, len(ranks), p.Comm.NRanks)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.cfg.Timeout, fmt.Errorf("no end after %v: %w", e.cfg.Timeout, context.DeadlineExceeded))
	defer cancel()
	k, err := newKernel(p.Req.Type, p.Req.Op)
	if err != nil {
		return exec.Result{}, err
	}
	x := &run{p: p, k: k, rxs: make([]*fifo, p.NumConns()), txs: make([]*fifo, p.NumConns()), mem: map[int32]*memory{}, seed: e.cfg.Seed}
	ctx, x.fail.stop = context.WithCancel(ctx)
	defer x.fail.stop()
	for _, r := range ranks {
		x.mem[r] = newMemory(p, r, k, e.cfg.Seed)
	}
	lanes, ends := x.collect(ranks)
	pumps, closeWires, err := e.connect(ctx, x, ends)
	defer closeWires()
	if err != nil {
		return exec.Result{}, err
	}
	return e.drive(ctx, x, ranks, lanes, pumps, sink)
}

// lane is a rank's channel: phases run one after another, the programs of a
// phase at once.
type lane struct{ phases [][]plan.Program }

// end is a connection's use by a local program.
type end struct {
	conn  plan.Conn
	send  bool
	steps int64 // of one message
	proto coll.Protocol
}

// collect lists the lanes of the local ranks and the ends of connections that
// their ops use.
func (x *run) collect(ranks []int32) ([]lane, []end) {
	var lanes []lane
	var ends []end
	seen := map[[2]int32]bool{}
	use := func(id int32, send bool, pr *plan.Program) {
		k := [2]int32{id, 0}
		if send {
			k[1] = 1
		}
		if !seen[k] {
			seen[k] = true
			ends = append(ends, end{x.p.Conn(id), send, int64(max(pr.SliceSteps, 1)), pr.Proto})
		}
	}
	var cur plan.Cursor
	var op plan.Op
	for _, r := range ranks {
		last := int32(-1)
		for _, pr := range x.p.Programs(r) {
			if pr.Channel != last {
				lanes, last = append(lanes, lane{}), pr.Channel
			}
			l := &lanes[len(lanes)-1]
			if n := len(l.phases); n == 0 || l.phases[n-1][0].Phase != pr.Phase {
				l.phases = append(l.phases, nil)
			}
			l.phases[len(l.phases)-1] = append(l.phases[len(l.phases)-1], pr)
			for x.p.OpenInto(&cur, &pr); cur.Next(&op); {
				for _, id := range op.From {
					use(id, false, &pr)
				}
				for _, id := range op.To {
					use(id, true, &pr)
				}
			}
		}
	}
	return lanes, ends
}

// drive starts all programs and pumps and waits for them.
func (e *Executor) drive(ctx context.Context, x *run, ranks []int32, lanes []lane, pumps []*pump, sink trace.Sink) (exec.Result, error) {
	began := time.Now()
	var work, moving sync.WaitGroup
	pumpCtx, stopPumps := context.WithCancel(ctx)
	defer stopPumps()
	for _, q := range pumps {
		moving.Add(1)
		go func() {
			defer moving.Done()
			if err := q.loop(pumpCtx); err != nil {
				x.fail.set(err)
			}
		}()
	}
	for i := range lanes {
		work.Add(1)
		go func() {
			defer work.Done()
			if err := x.runLane(ctx, &lanes[i]); err != nil {
				x.fail.set(err)
			}
		}()
	}
	work.Wait()
	elapsed := time.Since(began)
	for _, q := range pumps {
		q.finish.Store(true) // programs are done; the last sends may be on the way
	}
	moving.Wait()
	if err := x.fail.get(); err != nil {
		return exec.Result{}, fmt.Errorf("%v over %d ranks: %w", x.p.Req.Func, x.p.Comm.NRanks, err)
	}
	return x.result(ranks, elapsed)
}

func (x *run) runLane(ctx context.Context, l *lane) error {
	for _, phase := range l.phases {
		errs := make([]error, len(phase))
		var wg sync.WaitGroup
		for i := range phase {
			wg.Add(1)
			go func() {
				defer wg.Done()
				r := &runner{x: x, pr: phase[i], mem: x.mem[phase[i].Rank], ctx: ctx}
				errs[i] = r.go1()
			}()
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// result verifies the outputs and sums up.
func (x *run) result(ranks []int32, elapsed time.Duration) (exec.Result, error) {
	res := exec.Result{Elapsed: units.Time(elapsed.Nanoseconds()) * units.Nanosecond, Wrong: -1}
	res.Finish = make([]units.Time, x.p.Comm.NRanks)
	for _, r := range ranks {
		res.Finish[r] = res.Elapsed
	}
	if x.p.DataDefined() {
		res.Wrong = 0
		for _, r := range ranks {
			res.Wrong += x.verify(r)
		}
	}
	if s := float64(elapsed) / float64(time.Second); s > 0 {
		l := x.p.Layout(ranks[0])
		res.AlgBW = float64(max(l.Input, l.Output)) / 1e9 / s
		res.BusBW = res.AlgBW * x.p.Req.Func.BusFactor(x.p.Comm.NRanks)
	}
	return res, nil
}
