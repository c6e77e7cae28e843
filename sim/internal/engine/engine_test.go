package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/sim/wire/ideal"
	"github.com/simccl/simccl/units"
)

// broadcast is 8 bytes from rank 0 to rank 1 over LL: one connection, one op a rank.
const broadcast = `{"scenario": 1,
  "machine": {"nodes": [{"topo": "h200x4-4.xml"}], "gpus": 2, "class": "./round.json"},
  "nccl": {"env": {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL", "NCCL_MAX_NCHANNELS": "1"}},
  "workload": {"op": "broadcast", "sizes": ["8"]},
  "engine": {"launch": "graph", "fold": "off"}}`

// laid is an engine of the broadcast, all ranks laid out on links without contention.
func laid(t *testing.T, change func(*engine.Options)) *engine.Engine {
	t.Helper()
	r, o := site.Plan(t, broadcast)
	opt := engine.Options{Class: r.Site.Class(), Systems: r.Site.Comm.Systems(), Model: ideal.New(),
		Kernels: 1}
	change(&opt)
	e := engine.New(&opt, o.Plan)
	if err := e.LayAll(e.Jobs[0]); err != nil {
		t.Fatal(err)
	}
	e.LayHeads()
	e.Wire.Seal()
	return e
}

// diary is an observer that writes down what it receives.
type diary struct {
	e     *engine.Engine
	lines []string
}

func (d *diary) note(rank int32, format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf("%.1f rank %d ", d.e.Queue.Now.Micros(), rank)+
		fmt.Sprintf(format, args...))
}

var points = [...]string{engine.PieceBegun: "begun", engine.PieceJoined: "joined", engine.PieceMoved: "moved",
	engine.PieceRead: "read",
	engine.PieceHeld: "held", engine.PieceInRound: "in round", engine.PieceDone: "done"}

func (d *diary) Piece(ev engine.PieceEvent) {
	d.note(d.e.Groups[ev.Group].Rank, "piece %s", points[ev.Point])
}
func (d *diary) Sent(ev engine.SendEvent) {
	d.note(d.e.Groups[ev.Group].Rank, "sent %d B, readable at %.1f", ev.Bytes, ev.End.Micros())
}
func (d *diary) Kernel(k int32, at units.Time) {}
func (d *diary) Phase(int32)                   {}
func (d *diary) Block(sm int32, at units.Time) {
	d.lines = append(d.lines, fmt.Sprintf("%.1f block %d ends", at.Micros(), sm))
}
func (d *diary) Repeats() bool                       { return false }
func (d *diary) Keep()                               {}
func (d *diary) Period(engine.PeriodEvent)           {}
func (d *diary) Waits() bool                         { return false }
func (d *diary) Step(host.StepEvent)                 {}
func (d *diary) Reduction(host.ReductionEvent)       {}
func (d *diary) Thread(int32, units.Time)            {}
func (d *diary) Delayed(*host.QueuePair, units.Time) {}

// TestOneConnection: two ranks of a ring; its connection back to rank 0 has nothing
// to do. Rank 0's piece begins when its kernel has started (gap_ll = 3 us), joins its
// link ll_op = 0.2 us later and stores 8 bytes. LL has a flag beside each word: rank
// 1 begins with the first one, ll_op + ll_hop = 0.8 us after rank 0 began, and polls
// for ll_recv = 0.2 us. An observer is called with the life of each piece in order, and
// changes no time.
func TestOneConnection(t *testing.T) {
	e := laid(t, func(*engine.Options) {})
	if len(e.Devices) != 2 || len(e.Groups) != 2 || len(e.Conns) != 2 {
		t.Fatalf("%d devices, %d groups, %d connections; want 2 of each", len(e.Devices), len(e.Groups),
			len(e.Conns))
	}
	d := &diary{e: e}
	e.Observer = d
	e.Start()
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, want := strings.Join(d.lines, "\n"), strings.TrimSpace(`
3.0 rank 0 piece begun
3.2 rank 0 piece joined
3.3 rank 0 piece moved
3.3 rank 0 sent 8 B, readable at 3.9
3.3 rank 0 piece read
3.3 rank 0 piece done
3.3 block 0 ends
3.8 rank 1 piece begun
4.0 rank 1 piece joined
4.2 rank 1 piece moved
4.2 rank 1 piece read
4.2 rank 1 piece done
4.2 block 1 ends
`)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	silent := laid(t, func(*engine.Options) {})
	silent.Start()
	if err := silent.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	for r := range e.Devices {
		if a, b := e.Devices[r].Ends[0], silent.Devices[r].Ends[0]; a != b {
			t.Errorf("rank %d ends at %v when observed, at %v else", r, a, b)
		}
	}
	if there, back := e.Conns[0].Taken, e.Conns[1].Taken; there != 1 || back != 0 {
		t.Errorf("%d pieces read by rank 1 and %d by rank 0, want 1 and 0", there, back)
	}
}

// TestKernelsFollowEachOther: a second kernel of a rank starts when its first has
// ended, and a straggler's work takes longer by its factor.
func TestKernelsFollowEachOther(t *testing.T) {
	end := func(change func(*engine.Options)) []units.Time {
		e := laid(t, change)
		e.Start()
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		return e.Devices[1].Ends
	}
	once, twice := end(func(*engine.Options) {}), end(func(o *engine.Options) { o.Kernels = 2 })
	if len(twice) != 2 || twice[0] != once[0] || twice[1] <= twice[0] {
		t.Errorf("rank 1 ends at %v, alone at %v", twice, once)
	}
	if slow := end(func(o *engine.Options) { o.Slow = []float64{1, 2} }); slow[0] <= once[0] {
		t.Errorf("a slow rank ends at %v, others at %v", slow, once)
	}
}

// TestRankThatIsDown: what waits for it never ends, and is named.
func TestRankThatIsDown(t *testing.T) {
	e := laid(t, func(o *engine.Options) { o.Down = []bool{true, false} })
	e.Start()
	err := e.Run(context.Background())
	var hang *engine.HangError
	if !errors.As(err, &hang) || len(hang.Failed) != 1 || hang.Failed[0] != 0 || hang.First != 1 ||
		hang.Waiting != 1 {
		t.Errorf("%v, want that rank 1 waits for rank 0", err)
	}
}

// TestCancelledRunEnds with its context's reason.
func TestCancelledRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e := laid(t, func(*engine.Options) {})
	e.Start()
	if err := e.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

var _ wire.Model = ideal.New()
