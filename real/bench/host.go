package bench

import (
	"context"
	"os"
	"slices"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/internal/host"
	"github.com/simccl/simccl/real/internal/ibv"
	"github.com/simccl/simccl/real/internal/sock"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// HostConfig says how CPUs execute a plan.
type HostConfig struct {
	Wire     string // host (memory of this process), sockets or verbs
	Socket   netcfg.Socket
	IB       netcfg.IB
	Cluster  *fabric.Cluster // positions of ranks and NICs
	Describe string          // for the table's head
	Version  int             // version of NCCL whose plans run
	Same     []byte          // data that must be equal on all ranks
}

// hosts is the backend whose ranks are executed by CPUs, with buffers in host memory.
type hosts struct {
	cfg   HostConfig
	spec  *Spec
	team  *team.Team
	model Model
	exec  *host.Executor
	wire  *host.Wire
	all   []nccltests.Device
}

// OpenHost makes the backend of CPUs.
func OpenHost(spec *Spec, t *team.Team, c HostConfig, model NewModel) (Backend, error) {
	h := &hosts{cfg: c, spec: spec, team: t}
	var err error
	if h.wire, err = openWire(&c, t); err != nil {
		return nil, err
	}
	h.exec = h.executor(nccl.DetailStep)
	if err := t.Agree(c.Same); err != nil {
		return nil, err
	}
	if h.all, err = processes(t); err != nil {
		return nil, err
	}
	h.model, err = model(h.all)
	return h, err
}

func (h *hosts) executor(detail nccl.Detail) *host.Executor {
	return host.New(host.Config{Ranks: h.team.Here(), Wire: h.wire, Seed: h.spec.Seed, Timeout: h.spec.Limit,
		Trace: nccl.Options{Detail: detail}})
}

// processes lists the processes of all ranks, in the place of nccl-tests' GPUs.
func processes(t *team.Team) ([]nccltests.Device, error) {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	out, err := team.Gather(t, nccltests.Device{PID: os.Getpid(), Host: name})
	if err != nil {
		return nil, err
	}
	if t.Boot == nil {
		out = slices.Repeat(out, t.NRanks)
	}
	for r := range out {
		out[r].Rank, out[r].Name, out[r].BusID = r, "host memory", "0000:00:00"
	}
	return out, nil
}

func (h *hosts) About() About {
	return About{Devices: h.all, Headers: h.cfg.Version, Library: h.cfg.Version, Threads: 1,
		Describe: h.cfg.Describe}
}

func (h *hosts) Close() error { return nil }

// share is one rank's result of a measurement, which it sends to all others.
type share struct {
	Time  units.Time
	Wrong int64
}

// Measure times one plan as nccl-tests does, and verifies its result in a separate run.
func (h *hosts) Measure(ctx context.Context, op *device.Case, o device.Options) (m Measurement, err error) {
	pl, choice, err := h.model.Plan(op)
	if err != nil {
		return m, &PlanError{err}
	}
	x, err := h.exec.Open(ctx, pl)
	if err != nil {
		return m, err
	}
	mine, err := h.timed(ctx, x, o)
	if e := x.Close(err == nil); err == nil {
		err = e
	}
	if err != nil {
		return m, err
	}
	all, err := team.Gather(h.team, mine)
	if err != nil {
		return m, err
	}
	m.Shape, m.Choice, m.Checked, m.Time = "plan", &choice, o.Check != 0 && pl.DataDefined(),
		combine(all, o.Average)
	for _, s := range all {
		if m.Checked {
			m.Wrong += s.Wrong
		}
	}
	return m, nil
}

func (h *hosts) timed(ctx context.Context, x *host.Session, o device.Options) (mine share, err error) {
	if o.Warmup > 0 {
		if _, err := x.Iterate(ctx, o.Warmup); err != nil {
			return mine, err
		}
	}
	if err := h.team.Barrier(); err != nil {
		return mine, err
	}
	d, err := x.Iterate(ctx, o.Iters)
	if err != nil {
		return mine, err
	}
	mine.Time = d / units.Time(o.Iters)
	if o.Check == 0 {
		return mine, nil
	}
	if err := h.team.Barrier(); err != nil {
		return mine, err
	}
	res, err := x.Run(ctx, trace.Discard)
	mine.Wrong = max(res.Wrong, 0)
	return mine, err
}

// combine returns one time for all ranks' times.
func combine(all []share, how device.Average) units.Time {
	sum, lo, hi := units.Time(0), all[0].Time, all[0].Time
	for _, o := range all {
		sum, lo, hi = sum+o.Time, min(lo, o.Time), max(hi, o.Time)
	}
	switch how {
	case device.OfRank0:
		return all[0].Time
	case device.Fastest:
		return lo
	case device.Slowest:
		return hi
	}
	return sum / units.Time(len(all))
}

// trace runs the operation once more, after a warm-up, with every step recorded.
func (h *hosts) trace(ctx context.Context, op *device.Case, to Trace) (*chrome.Writer, error) {
	pl, _, err := h.model.Plan(op)
	if err != nil {
		return nil, &PlanError{err}
	}
	x, err := h.executor(to.Detail).Open(ctx, pl)
	if err != nil {
		return nil, err
	}
	w, err := h.traced(ctx, x, pl, to)
	if e := x.Close(err == nil); err == nil && e != nil {
		w.Abort()
		err = e
	}
	return w, err
}

func (h *hosts) traced(ctx context.Context, x *host.Session, pl *plan.Plan, to Trace) (*chrome.Writer,
	error) {
	if n := h.spec.Options.Warmup; n > 0 {
		if _, err := x.Iterate(ctx, n); err != nil {
			return nil, err
		}
	}
	sync, err := clocks(h.team, 0)
	if err != nil {
		return nil, err
	}
	if err := h.team.Barrier(); err != nil {
		return nil, err
	}
	w, err := to.create(h.team, "CLOCK_MONOTONIC")
	if err != nil {
		return nil, err
	}
	res, err := x.Run(ctx, w)
	if err == nil && h.spec.Options.Check != 0 && pl.DataDefined() && res.Wrong > 0 {
		err = team.Wrong("%d elements of the operation of the trace are wrong", res.Wrong)
	}
	if err != nil {
		w.Abort()
		return nil, err
	}
	w.Clock(x.Epoch(), sync)
	return w, nil
}

// clocks compares this process's clock with rank 0's if there are other processes; far is the uncertainty of
// the trace's times, in nanoseconds.
func clocks(t *team.Team, far int64) ([]chrome.ClockSync, error) {
	if t.Boot == nil {
		return nil, nil
	}
	ahead, doubt, err := host.CompareClocks(t.Boot, t.Rank, t.NRanks)
	return []chrome.ClockSync{{Rank: t.Rank, OffsetNs: ahead, UncertaintyNs: doubt + far}}, err
}

// openWire opens the transport; nil for memory.
func openWire(c *HostConfig, t *team.Team) (*host.Wire, error) {
	var n transport.Net
	var err error
	w := &host.Wire{}
	switch c.Wire {
	case "host":
		if t.Several() {
			return nil,
				team.Refuse("--backend host: ranks of several processes share no memory; write sockets or " +
					"verbs")
		}
		return nil, nil
	case "sockets":
		set := c.Socket
		if set.IfName == "" && t.OnOneHost() {
			set.IfName = "lo"
		}
		n, err = sock.NewNet(set)
	case "verbs":
		set := c.IB
		set.Host = t.Address()
		n, err = ibv.NewNet(set)
		w.Memory = verbs.HostMemory
	}
	if err != nil {
		return nil, err
	}
	w.Net = n
	if w.Device, err = assignNICs(c.Cluster, n); err != nil {
		return nil, err
	}
	if t.Boot != nil {
		w.Exchange = func(int32) host.Exchange { return t.Boot }
	} else {
		w.Exchange = host.NewInProcess().Of
	}
	return w, nil
}

// assignNICs returns which device of a transport each end of a connection uses: the machine's NICs, by name
// if the transport has them. If the topology is another machine's, each host begins with a different device,
// so that hosts simulated on this machine do not share a port. Between ranks of one host, the position of the
// rank decides.
func assignNICs(cluster *fabric.Cluster, n transport.Net) (func(rank, nic int32) int, error) {
	devs, err := n.Devices()
	if err != nil {
		return nil, err
	}
	var nics []host.NIC
	first := make([]int, len(cluster.Classes)) // first NIC of each class
	for i, c := range cluster.Classes {
		first[i] = len(nics)
		s := c.Host.Systems[0]
		for _, id := range s.Of(topo.NET) {
			ports := s.Nodes[id].Net.Fused
			if ports == nil {
				ports = []string{s.Nodes[id].Net.Name}
			}
			nics = append(nics, host.NIC{Ports: ports})
		}
	}
	assigned, ours, err := host.Assign(n, nics)
	if err != nil {
		return nil, err
	}
	return func(rank, nic int32) int {
		at := cluster.Locate(int(rank))
		if nic < 0 {
			return at.Local % len(devs)
		}
		dev := assigned[first[cluster.ClassOf(at.Host)]+int(nic)]
		if !ours {
			dev = (dev + at.Host) % len(devs)
		}
		return dev
	}, nil
}
