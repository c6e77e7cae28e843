package explain

import (
	"errors"
	"fmt"
	"sort"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Input is the question.
type Input struct {
	Comm *comm.Comm
	Op   comm.Op
	// Access is what the topology was built with: who may use a path.
	Access topo.Access
	// Limit is the largest size for which crossovers are looked for; 16 GiB
	// where it is 0.
	Limit units.Bytes
}

// Report is the answer.
type Report struct {
	NCCL  string      `json:"nccl"`
	Op    string      `json:"op"`
	Type  string      `json:"type"`
	RedOp string      `json:"redop,omitempty"`
	Size  units.Bytes `json:"size"`  // as nccl-tests prints it and the model has it
	Count int64       `json:"count"` // NCCL's
	Ranks int         `json:"ranks"`
	Nodes int         `json:"nodes"`

	// Choice is the winner, nil where NCCL chooses nothing; Note then says why.
	Choice *Cell  `json:"choice,omitempty"`
	Note   string `json:"note,omitempty"`
	// Steered: a tuner plugin chose, not the cost model.
	Steered bool `json:"steered,omitempty"`
	// Overruled are the rules of RCCL by which the choice is another than that of the least time; Instead are
	// the ways that it takes in place of it.
	Overruled []tuning.Reason `json:"overruled,omitempty"`
	Instead   []tuning.Reason `json:"instead,omitempty"`
	// Warnings are traps of NCCL that this communicator can fall into, and what of the
	// decisions is not confirmed.
	Warnings []string `json:"warnings,omitempty"`
	Launch   *Launch  `json:"launch,omitempty"`
	// Preset is RCCL's model of the machine.
	Preset *Preset `json:"preset,omitempty"`
	// Derivation is how the winner's bandwidth is derived.
	Derivation []tuning.Step `json:"derivation,omitempty"`
	// Rivals are the other cells: those that are available by time, then those
	// that are off in NCCL's order.
	Rivals     []Cell    `json:"rivals,omitempty"`
	Crossovers []Range   `json:"crossovers,omitempty"`
	Graph      *GraphUse `json:"graph,omitempty"`
	// Memory is what registered buffers and symmetric windows would change.
	Memory  *Memory   `json:"memory,omitempty"`
	Refused []Refusal `json:"refused,omitempty"`
}

// Cell is one algorithm with one protocol.
type Cell struct {
	Algo      string  `json:"algo"`
	Proto     string  `json:"proto"`
	Available bool    `json:"available"`
	TimeUs    float32 `json:"timeUs,omitempty"` // the cost model's
	AlgBW     float64 `json:"algbw,omitempty"`  // GB/s at that time
	BusBW     float64 `json:"busbw,omitempty"`
	LatencyUs float32 `json:"latencyUs,omitempty"` // at this size
	// at this size; of a cell that is off, what it would have
	BandwidthGBps float32 `json:"bandwidthGBps,omitempty"`
	// Slower is the time over the winner's.
	Slower float64         `json:"slower,omitempty"`
	Off    []tuning.Reason `json:"off,omitempty"`
}

// Launch is what runs.
type Launch struct {
	MaxChannels int         `json:"maxChannels"` // the cost model's bound
	Channels    int         `json:"channels"`    // that the work is split over
	Threads     int         `json:"threads"`     // of a block
	Buffer      units.Bytes `json:"buffer"`      // of a connection with that protocol
	Parts       []Part      `json:"parts,omitempty"`
	// Striped: the channels take chunks round-robin (CollNet), and Bytes of the one
	// Part are those of all.
	Striped bool `json:"striped,omitempty"`
}

// Part is a run of channels with equal shares.
type Part struct {
	First int         `json:"first"` // channel
	Last  int         `json:"last"`
	Bytes units.Bytes `json:"bytes"` // of one channel; of each rank's block where ranks have blocks
	Chunk units.Bytes `json:"chunk"`
	Slice units.Bytes `json:"slice"`
	Steps int         `json:"steps"` // of the FIFO, per chunk
}

// Range is a run of sizes with one winner.
type Range struct {
	From  units.Bytes `json:"from"`
	To    units.Bytes `json:"to"`
	Algo  string      `json:"algo"`
	Proto string      `json:"proto"`
	// Mixed: two rivals are equal but for rounding and alternate.
	Mixed bool `json:"mixed,omitempty"`
	// Direct is RCCL's way in place of it.
	Direct string `json:"direct,omitempty"`
	Here   bool   `json:"here,omitempty"` // holds the size asked for
}

const defaultLimit = 16 << 30

// New explains. A *tuning.NoChoiceError comes together with a Report that says
// why every cell is off.
func New(in Input) (*Report, error) {
	c, o := in.Comm, in.Op
	top := tuning.Op{Func: o.Func, Count: o.Count, Type: o.Type, RedOp: o.RedOp}
	r := &Report{
		NCCL: c.Params.Rules.Version(), Op: o.Func.TestName(), Type: o.Type.TestName(), Count: o.Count,
		Size: coll.CountSizes(o.Func, o.Count, c.NRanks).Bytes(o.Type), Ranks: c.NRanks, Nodes: c.NNodes,
	}
	if o.Func.Reduces() {
		r.RedOp = o.RedOp.TestName()
	}
	r.Refused, r.Preset = refusals(c, in.Access), presetOf(c)
	for _, w := range []string{c.PeerWarning(), c.Unverified(), c.NICWarning()} {
		if w != "" {
			r.Warnings = append(r.Warnings, w)
		}
	}
	for _, w := range []string{c.SplitWarning(), c.RingWarning()} {
		if w != "" {
			r.Warnings = append(r.Warnings, w)
		}
	}
	switch {
	case c.NRanks == 1:
		return r, r.oneRank(c, o)
	case o.Func.IsP2P():
		r.rccl(c, tuning.Choice{Op: top})
		if o.Count > 0 {
			if err := r.memory(c, o, tuning.Choice{}); err != nil {
				return nil, err
			}
		}
		return r, r.sendRecv(c)
	case o.Count == 0:
		r.Note = "nothing to do: the size is less than one element a rank"
		return r, nil
	}
	choice, err := c.Choose(top)
	var none *tuning.NoChoiceError
	if err != nil && !errors.As(err, &none) {
		return nil, err
	}
	r.Steered = choice.Steered
	r.rccl(c, choice)
	r.cells(c, top, choice, err == nil)
	if err != nil {
		r.Note = err.Error()
		return r, err
	}
	if w := c.HeadWarning(); w != "" && choice.Algo == coll.NVLS && o.Func != coll.AllReduce {
		r.Warnings = append(r.Warnings, w)
	}
	r.Derivation = derivation(c, top, choice)
	if err := r.crossovers(c, top, in.Limit); err != nil {
		return nil, err
	}
	if err := r.memory(c, o, choice); err != nil {
		return nil, err
	}
	r.Graph = graphUse(c, graphOf[choice.Algo])
	return r, r.launch(c, o, choice)
}

// cells fills Choice and Rivals.
func (r *Report) cells(c *comm.Comm, o tuning.Op, choice tuning.Choice, chosen bool) {
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			t := choice.Times[a][p]
			terms := c.Model.Terms(o, a, p)
			cell := Cell{Algo: a.String(), Proto: p.String(), LatencyUs: terms.LatencyUs,
				BandwidthGBps: terms.GBps}
			if t < 0 {
				cell.Off = c.Model.WhyOff(o, a, p)
				r.Rivals = append(r.Rivals, cell)
				continue
			}
			cell.Available, cell.TimeUs = true, t
			cell.AlgBW, cell.BusBW = coll.Bandwidth(o.Func, o.Count, o.Type, c.NRanks,
				units.FromMicros(float64(t)))
			if chosen {
				cell.Slower = float64(t) / float64(choice.TimeUs)
			}
			if chosen && a == choice.Algo && p == choice.Proto {
				r.Choice = &cell
				continue
			}
			r.Rivals = append(r.Rivals, cell)
		}
	}
	sort.SliceStable(r.Rivals, func(i, j int) bool {
		x, y := &r.Rivals[i], &r.Rivals[j]
		if x.Available != y.Available {
			return x.Available
		}
		return x.Available && x.TimeUs < y.TimeUs
	})
}

// derivation adds what depends on the size to the model's.
func derivation(c *comm.Comm, o tuning.Op, ch tuning.Choice) []tuning.Step {
	steps := c.Model.Derive(o.Func, ch.Algo, ch.Proto)
	terms := c.Model.Terms(o, ch.Algo, ch.Proto)
	if terms.Correction != 1 && c.Params.Rules.Tuning.Has() {
		steps = append(steps, tuning.Step{What: fmt.Sprintf("this size has %g of it (%s)", terms.Correction,
			c.Params.Rules.Cite(rules.AtFactor)), GBps: terms.GBps})
	} else if terms.Correction != 1 {
		steps = append(steps, tuning.Step{What: fmt.Sprintf("trees of this size reach %g of it",
			terms.Correction), GBps: terms.GBps})
	}
	if terms.Plateau != 1 {
		steps = append(steps,
			tuning.Step{What: fmt.Sprintf("a ring of this size between nodes has its latency x %g",
				terms.Plateau), GBps: terms.GBps})
	}
	return steps
}

func (r *Report) crossovers(c *comm.Comm, o tuning.Op, limit units.Bytes) error {
	if limit <= 0 {
		limit = defaultLimit
	}
	segs, err := c.Model.Segments(o, max(limit, r.Size))
	if err != nil {
		return err
	}
	for _, s := range segs {
		r.Crossovers = append(r.Crossovers, Range{
			From: s.From, To: s.To, Algo: s.Algo.String(), Proto: s.Proto.String(), Mixed: s.Mixed,
			Direct: s.Direct,
			Here:   s.From <= r.Size && r.Size <= s.To,
		})
	}
	return nil
}

// launch reports how the work is split.
func (r *Report) launch(c *comm.Comm, o comm.Op, ch tuning.Choice) error {
	l := &Launch{MaxChannels: ch.MaxChannels, Threads: ch.Threads, Buffer: c.BuffSizes[ch.Proto]}
	r.Launch = l
	req, _, err := c.Request(o)
	if err != nil {
		return err
	}
	if req.Way != "" { // nothing is split over channels
		return nil
	}
	s, err := build.Split(c.Layout, req)
	if err != nil {
		if errors.Is(err, plan.ErrUnsupported) {
			r.Note = "how the work is split is not known: " + err.Error()
			return nil
		}
		return err
	}
	l.Channels = s.NChannels
	add := func(from, to int, p plan.Part) {
		if from > to || p.Count == 0 {
			return
		}
		next := Part{First: from, Last: to, Bytes: units.Bytes(p.Count) * s.ElemSize, Chunk: p.ChunkSize,
			Slice: p.SliceSize, Steps: p.ChunkSteps}
		if n := len(l.Parts); n > 0 {
			joined := l.Parts[n-1]
			joined.First, joined.Last = from, to
			if joined == next {
				l.Parts[n-1].Last = to
				return
			}
		}
		l.Parts = append(l.Parts, next)
	}
	if l.Striped = s.Striped; s.Striped {
		add(s.ChannelLo, s.ChannelHi, s.Lo)
		return nil
	}
	add(s.ChannelLo, s.ChannelLo, s.Lo)
	if s.NChannels > 1 {
		add(s.ChannelLo+1, s.ChannelHi-1, s.Mid)
		add(s.ChannelHi, s.ChannelHi, s.Hi)
	}
	return nil
}

// sendRecv describes the operations that the cost model does not cover.
func (r *Report) sendRecv(c *comm.Comm) error {
	r.Note = fmt.Sprintf("NCCL makes it of sends and receives, for which it compares nothing: each peer "+
		"gets %d of %d channels, in chunks of %d bytes",
		c.P2PChannelsPerPeer, c.P2PChannels, c.P2PChunkSize)
	return nil
}

// oneRankNotes say what NCCL does in place of an algorithm, and where.
var oneRankNotes = map[plan.OneRank]struct {
	what string
	at   rules.Place
}{
	plan.NoLaunch: {"one rank, in place: NCCL launches nothing", rules.AtOneRank},
	plan.DeviceCopy: {"one rank: NCCL copies from source to destination by cudaMemcpyAsync",
		rules.AtOneRankCopy},
	plan.OneRankKernel: {"one rank: NCCL scales the input with a kernel of its own",
		rules.AtOneRankKernel},
	plan.SelfSend: {what: "one rank: NCCL sends to itself in the kernel of send and receive"},
}

// oneRank says what a communicator of one rank does, where nothing is chosen.
func (r *Report) oneRank(c *comm.Comm, o comm.Op) error {
	if o.Count == 0 {
		r.Note = "nothing to do: the size is less than one element a rank"
		return nil
	}
	p, _, err := c.Plan(o)
	if err != nil {
		return err
	}
	note := oneRankNotes[p.OneRank()]
	r.Note = cited(note.what, c.Params.Rules.Cite(note.at))
	return nil
}
