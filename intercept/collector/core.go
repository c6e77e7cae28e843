// Package collector is the virtual cluster that intercepted programs run on: their
// communicators, streams and clocks. Each thread of a program sends requests over
// a connection of its own; the collector matches the calls of the ranks, finds what
// each takes from Prices, and answers with the thread's new clock.
//
// When operations of streams are ready is streams.Clock's: at the latest of the ends
// before them and the host's call. The collector says when they end; a collective
// begins when the last of its ranks is ready. So a program's times follow from its
// calls and not from the order in which requests arrive.
//
// What it must not know: how programs are started, files, flags.
package collector

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"

	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/calls"
)

// Clock is how the time of programs passes (--time).
type Clock uint8

// Clocks; shim.h has the same numbers.
const (
	Record   Clock = iota // not at all: calls return at once, and are recorded
	Virtual               // by calls and what they wait for
	Measured              // and by the processor time of threads
	Paced                 // as it passes: programs wait
)

// Clocks are the words of --time, by Clock.
var Clocks = [...]string{"record", "virtual", "measured", "paced"}

// String is the word of a Clock.
func (c Clock) String() string { return Clocks[c] }

// Devices is what programs compute on (--devices).
type Devices uint8

// Devices; shim.h has the same numbers.
const (
	Real    Devices = iota // GPUs and CUDA of this machine
	Pretend                // a substitute for the CUDA runtime
	None                   // programs that use no CUDA
)

// DeviceWords are the words of --devices, by Devices.
var DeviceWords = [...]string{"real", "virtual", "none"}

// String is the word of Devices.
func (d Devices) String() string { return DeviceWords[d] }

// Prices finds what operations take; *session.Prices does.
type Prices interface {
	Launch(gpus int) units.Time
	Collectives(ctx context.Context, ranks []int32, calls []workload.Call) (units.Time, error)
	Messages(ctx context.Context, ranks []int32, list []session.Message) ([]units.Time, error)
	Beside() (compute, calls float64)
}

// Settings say how time passes, which devices programs find, and what prices operations.
type Settings struct {
	Clock   Clock
	Devices Devices
	Data    bool
	GPUs    int   // of the virtual cluster: devices that a program finds
	SM      int   // compute capability, 90
	Memory  int64 // bytes of a GPU
	// Real, above 0, is how many ranks of a larger communicator are processes of the
	// program; each other one does what the nearest rank below that is does (--fake-ranks).
	Real int
	// Grid, where it is not nil, is of what sizes the groups of the ranks of such a communicator are
	// (--fake-grid); its places are compared, not ranks.
	Grid Grid
	// Prices is nil where nothing is simulated (Record).
	Prices Prices
	// Know says whose a connection is. Where it is nil, a program is what it says, and shows no memory.
	Know func(c net.Conn, hello []byte) (*Peer, error)
	// Warn is called with what went wrong, once each.
	Warn func(text string)
}

// Peer is the process behind a connection, as the system knows it.
type Peer struct {
	PID    int   // in the collector's namespace
	Refuse error // why it has nothing to ask; it gets the reason
	// Memory is what of a process can be read and written: that which it has shown, and no other.
	Memory Memory
}

// Memory reads and writes a process's memory by address. It is closed when the process ends.
type Memory interface {
	dataMemory
	io.Closer
}

// Core is the collector's state, of all programs, under one mutex: each request is carried out whole.
type Core struct {
	set      Settings
	ctx      context.Context
	mu       sync.Mutex
	procs    []*process
	comms    []*comm
	members  []*member // by handle - 1
	forming  map[string]*comm
	job      *comm            // the first one with ranks of a grid that are no process's
	imitated map[string]*comm // by id, with ranks that are no process's
	waiting  []*waiter
	clock    streams.Clock[*op]
	gpus     []*rank
	graphs   []*graph
	turns    map[int64]*turn // by real GPU
	moving   map[int64]*move
	moves    int64
	mover    *process // that moves data
	moverPID int
	refused  map[int]bool // processes that have the reason
	noMover  string       // why there is none
	unmoved  []*move      // until it is there
	serial   int          // requests so far
	fed      int64        // calls of records
	feeding  bool         // records are read or have been, of communicators that may have ended
	changed  bool         // since waiters were looked at last
	threads  map[*thread]bool
	faults   int
	walks    int // over units that messages connect
}

// rank is a GPU of the cluster and what was called on it.
type rank struct {
	taken   bool
	fake    bool            // by ranks that are no process's alone
	marks   map[markKey]int // numbers of CUDA's events
	events  []calls.Event
	threads map[int]units.Time // by thread: its busy time at the last event
	kernels map[*comm]*op      // the last kernel of a communicator's resources
	streams map[*stream]int
	groups  int
	dropped map[int]bool // events that were not carried out
	busy    []busySpan   // with kernels of communicators, as they began
	calls   int          // launches of real streams so far
	open    []launched   // those that may not have ended, in order
	held    []*op        // segments that wait for them
	stalled int          // ticks of Watch since one of them has ended
}

// markKey identifies a CUDA event, whose handle is unique within a process only.
type markKey struct {
	p      *process
	handle uint64
}

// process is a process of an intercepted program. Each of its threads has a connection; one more may be the
// whole process's.
type process struct {
	pid      int
	own      int // what it calls itself: in its own namespace
	memory   Memory
	launcher int // its rank as the launcher says, -1 unknown
	ended    bool
	devices  map[int]*device
	latest   int64
	queue    []*op // host functions that have to run
	running  map[int64]*op
	calls    int
	events   map[uint64]*event
	live     *live
	mover    bool
	threads  map[int]*thread // by number
}

// thread is a connection of a process.
type thread struct {
	p      *process
	id     int
	whole  bool // the connection of the process
	now    int64
	waited int64
	worked bool
	// polled are what the thread has found unfinished and has done nothing but poll
	// since.
	polled map[*op]bool
}

// device is a GPU as a process sees it.
type device struct {
	p       *process
	id      int
	gpu     int // of the cluster, -1 not known yet
	streams map[uint64]*stream
	order   streams.Device[*op]
}

// New returns a collector without programs.
func New(ctx context.Context, s Settings) *Core {
	c := &Core{set: s, ctx: ctx, forming: map[string]*comm{}, imitated: map[string]*comm{},
		gpus: make([]*rank, s.GPUs), threads: map[*thread]bool{}, refused: map[int]bool{},
		turns: map[int64]*turn{}, moving: map[int64]*move{}}
	c.clock.Arrive = c.arrive
	for i := range c.gpus {
		c.gpus[i] = &rank{threads: map[int]units.Time{}, kernels: map[*comm]*op{}, streams: map[*stream]int{},
			dropped: map[int]bool{}, marks: map[markKey]int{}}
	}
	return c
}

// Calls is how many calls of NCCL there were.
func (c *Core) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.procs {
		n += p.calls
	}
	return n
}

// Processes is how many processes have connected.
func (c *Core) Processes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.procs {
		if !p.mover {
			n++
		}
	}
	return n
}

// Faults is how many faults of programs were reported to Settings.Warn.
func (c *Core) Faults() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.faults
}

// Elapsed is the latest clock of any process.
func (c *Core) Elapsed() units.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := int64(0)
	for _, p := range c.procs {
		t = max(t, p.latest)
	}
	return units.Time(t)
}

func (c *Core) warn(format string, args ...any) {
	c.faults++
	if c.set.Warn != nil {
		c.set.Warn(fmt.Sprintf(format, args...))
	}
}

// processOf finds a process, or makes it known.
func (c *Core) processOf(pid, own, launcher int, first bool) *process {
	for i := len(c.procs) - 1; i >= 0; i-- {
		if p := c.procs[i]; p.pid == pid && p.own == own && !(first && p.ended) {
			return p
		}
	}
	p := &process{pid: pid, own: own, launcher: launcher, devices: map[int]*device{},
		running: map[int64]*op{}, events: map[uint64]*event{},
		threads: map[int]*thread{}, live: &live{segments: map[uint64]*op{}, tickets: map[uint64]int{}}}
	c.procs = append(c.procs, p)
	return p
}

// recorded returns the process of a record, by the pid of its own namespace: the last one, as pids are
// reused.
func (c *Core) recorded(pid int) *process {
	for i := len(c.procs) - 1; i >= 0; i-- {
		if p := c.procs[i]; p.own == pid {
			return p
		}
	}
	return c.processOf(pid, pid, -1, false)
}

func (p *process) device(id int) *device {
	d, ok := p.devices[id]
	if !ok {
		d = &device{p: p, id: id, gpu: -1, streams: map[uint64]*stream{}}
		p.devices[id] = d
	}
	return d
}

// refuse returns a reply with a status of NCCL or CUDA and the reason, which the shim reports.
func refuse(status int32, format string, args ...any) reply {
	return reply{status: status, text: fmt.Sprintf(format, args...)}
}

// estimate is ncclGroupSimulateEnd: what the group's collectives take.
func (c *Core) estimate(ops []wireOp) reply {
	if c.set.Prices == nil {
		return refuse(invalidUsage, "ncclGroupSimulateEnd: nothing is simulated under --time record")
	}
	members, bad := c.check(ops)
	if bad != nil {
		return *bad
	}
	total := int64(0)
	for i := range ops {
		if isMessage(&ops[i]) {
			return refuse(invalidUsage,
				"ncclGroupSimulateEnd: a single send or receive has no time of its own")
		}
		t, err := c.collectives(members[i].c, ops[i:i+1])
		if err != nil {
			return refuse(internalError, "%v", err)
		}
		total += t
	}
	return reply{a: [4]int64{total}}
}
