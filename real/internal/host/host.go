// Package host executes a plan's programs on the CPU, in host memory: every rank's thread groups are
// goroutines, connections are FIFOs of steps as on a GPU, and between ranks of different processes (or, if
// requested, of one) steps travel over a transport.Net, pumped by one progress loop per rank like NCCL's
// proxy. It validates verbs and sockets: results are compared with the reference to the last element.
package host

import (
	"context"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
)

// Exchange transports the handles of connections between ranks; bootstrap.Group and InProcess implement it.
// If it has a Barrier, connections are closed after one, so that no rank closes one that another still uses.
type Exchange interface {
	Send(peer int, tag uint32, data []byte) error
	Recv(peer int, tag uint32) ([]byte, error)
}

// Wire says over which device a rank reaches others, and how it exchanges handles with them. Without a Wire
// all ranks belong to this process and share memory.
type Wire struct {
	Net transport.Net
	// Device returns the device that a rank's end of a connection uses; nic is the plan's NIC of that end, by
	// index among its host's nets; -1 if the plan has none (between ranks of one host).
	Device   func(rank, nic int32) int
	Exchange func(rank int32) Exchange
	// Memory allocates FIFO memory that the net can register; nil: Go memory.
	Memory func(n int) ([]byte, func(), error)
}

// Config says what this process runs.
type Config struct {
	Ranks []int32 // local ranks; nil means all
	Wire  *Wire
	Seed  uint64 // of the input data
	// Timeout bounds a run, default 2 minutes.
	Timeout time.Duration
	// Trace selects the events that are written to a sink.
	Trace nccl.Options
}

// Executor implements exec.Executor on CPUs.
type Executor struct{ cfg Config }

// New returns an executor.
func New(cfg Config) *Executor {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Minute
	}
	return &Executor{cfg}
}

// run is one operation in progress: memory, FIFOs and trace of the local ranks.
type run struct {
	p    *plan.Plan
	k    *kernel
	rxs  []*fifo // by connection id; nil if no local program receives
	txs  []*fifo
	mem  map[int32]*memory
	seed uint64
	fail failure
	log  *log // nil: no trace
	// crowded: more goroutines wait than there are processors.
	crowded bool
}

func (x *run) rx(id int32) *fifo { return x.rxs[id] }
func (x *run) tx(id int32) *fifo { return x.txs[id] }

// Run executes the plan once on fresh data and verifies every output of the local ranks; Result.Wrong counts
// the wrong elements.
func (e *Executor) Run(ctx context.Context, job exec.Job, sink trace.Sink) (exec.Result, error) {
	p, err := job.Single("the executor on CPUs")
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	s, err := e.Open(ctx, p)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	res, err := s.Run(ctx, sink)
	if e := s.Close(err == nil); err == nil {
		err = e
	}
	return res, err
}

// lane is a rank's channel: its phases run one after another, the programs of a phase at the same time.
type lane struct {
	rank, channel int32
	phases        [][]plan.Program
}

// end is a local program's end of a connection.
type end struct {
	conn  plan.Conn
	send  bool
	steps int64 // of one message
	proto coll.Protocol
}

// collect lists the lanes of the local ranks and the ends of connections that their ops use.
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
				lanes, last = append(lanes, lane{rank: r, channel: pr.Channel}), pr.Channel
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
