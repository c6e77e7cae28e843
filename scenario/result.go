package scenario

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/sim/congestion"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Result is what a Spec without a Grid came to, as data. Its JSON holds no time of
// day, host or path, so equal runs give equal bytes.
type Result struct {
	Format int `json:"result"` // FormatVersion
	// Digest identifies the Spec with the contents of its files (Site.Digest).
	Digest string `json:"digest"`
	Spec   Spec   `json:"spec"`
	// NCCL is the version whose rules decided.
	NCCL    string      `json:"ncclVersion"`
	Machine MachineInfo `json:"machine"`
	Rows    []Row       `json:"rows"`
	// AvgBusBW is the mean of all rows' bus bandwidths, out of place and in
	// place, GB/s.
	AvgBusBW float64 `json:"avgBusBW"`
	// Notes say what limits the result: sizes that are approximate and why.
	Notes []string `json:"notes,omitempty"`
}

// MachineInfo sums up the machine of a Result.
type MachineInfo struct {
	Name   string `json:"name"`   // base names of the topologies
	SHA256 string `json:"sha256"` // of their bytes
	Ranks  int    `json:"ranks"`
	Nodes  int    `json:"nodes"`
	Class  string `json:"class"`
	// Uncertainty is the relative error of a predicted time (Site.Uncertainty).
	Uncertainty float64 `json:"uncertainty"`
}

// Row is one size of one type, reduction and root.
type Row struct {
	Func  string      `json:"func"` // as nccl-tests calls it
	Type  string      `json:"type"`
	RedOp string      `json:"redop,omitempty"`
	Root  int         `json:"root"` // -1 where the operation has none
	Bytes units.Bytes `json:"bytes"`
	Count int64       `json:"count"` // NCCL's count argument
	// Out is out of place, In in place.
	Out Measure `json:"outOfPlace"`
	In  Measure `json:"inPlace"`
	// Facts are of the operation out of place.
	Facts Facts `json:"facts"`
	// Operation is the point out of place, for Run.Outcome.
	Operation Operation `json:"-"`
}

// Measure is a time and the bandwidths that follow from it.
type Measure struct {
	// Time is the operation's; with Engine.CPUTime the host's to launch it, which
	// bandwidths do not follow, as in nccl-tests.
	Time units.Time `json:"ps"`
	// AlgBW is bytes over time, BusBW that with the operation's factor; GB/s.
	AlgBW float64 `json:"algbw"`
	BusBW float64 `json:"busbw"`
	// Checked is set where the plan was proved to compute what it should.
	Checked bool `json:"checked"`
	// Wrong counts elements that NCCL itself puts in wrong places (plan.Misplaced).
	Wrong int64 `json:"wrong,omitempty"`
	// First is how long the first of operations takes that follow each other.
	First units.Time `json:"-"`
}

// Facts say what was chosen, what limits it and how the time was found.
type Facts struct {
	Algo     string `json:"algo"`
	Proto    string `json:"proto"`
	Channels int    `json:"nchannels"`
	// Kernel is NCCL's name of a kernel over symmetric windows; Algo is SYM then. Copy
	// engines have CE there.
	Kernel string `json:"kernel,omitempty"`
	// Counts says how unequal the parts of an all_to_all_v are, in elements; else nil.
	Counts  *coll.Spread `json:"counts,omitempty"`
	ModelUs float64      `json:"model_us"` // NCCL's own prediction; 0 where it makes none
	SimUs   float64      `json:"sim_us"`
	// Expect is the bus bandwidth if the limiting link were never idle, GB/s.
	Expect  float64 `json:"expect_busbw_GBs"`
	Limit   string  `json:"limiting_link"`
	IdealUs float64 `json:"ideal_us"` // the least time in which the limiting link moves its bytes
	// Overfull names a link that carried more than it can: a defect of simccl.
	Overfull string `json:"overfull_link,omitempty"`
	// Links are the five with the highest utilisation.
	Links []LinkFacts `json:"links,omitempty"`
	// Use is the limiting link's utilisation, Queue the estimated mean of bytes
	// queued for it.
	Use   float64 `json:"limiting_use"`
	Queue int64   `json:"limiting_queue_bytes"`
	// Congestion is of a network that was simulated frame by frame; else nil.
	Congestion *congestion.Facts `json:"congestion,omitempty"`
	// Simulated is exec.Method's name, Margin the relative error of a result that
	// is approximate, Near what was left out for it.
	Simulated string  `json:"simulated"`
	Margin    float64 `json:"margin,omitempty"`
	Near      string  `json:"near,omitempty"`
	// Periods are those of a steady state that were counted, or the iterations beyond
	// a window, in place of being simulated; SkippedPs is their time, picoseconds.
	Periods   int64 `json:"periods,omitempty"`
	SkippedPs int64 `json:"skipped_ps,omitempty"`
	// ByCost is set of a window where the whole would cost too much: --fold exact runs it.
	ByCost bool `json:"-"`
	// Account says what of the operation was simulated in place of all of it, and why.
	Account exec.Account `json:"-"`
	// Draws are those of hashed routes, where the draw matters and the Spec has no seed; else nil.
	Draws *Draws `json:"draws,omitempty"`
	// NotProved is what of the plan was too large for its proof.
	NotProved string `json:"not_proved,omitempty"`
	// Regret is the time of NCCL's choice over that of the fastest choice, Best
	// that choice; nil where rivals were not simulated.
	Regret *float64 `json:"regret"`
	Best   string   `json:"best,omitempty"`
}

// LinkFacts describe one direction of one link.
type LinkFacts struct {
	Name  string  `json:"name"`
	GBps  float64 `json:"GBs"`
	Bytes int64   `json:"bytes"`
	Use   float64 `json:"use"`         // share of the operation's time that its bytes need
	Queue int64   `json:"queue_bytes"` // estimated mean of bytes queued for it
}

// Outcome is one simulated operation with what it was made of.
type Outcome struct {
	Choice     tuning.Choice // zero for send and receive, and for one rank
	Plan       *plan.Plan    // nil for an operation of no elements, and where Kernel, Copies or Peer is set
	Kernel     *sym.Launch   // the kernel over symmetric windows that NCCL takes; nil for another
	Copies     *sym.Copies   // the copies by copy engines that it takes; nil for kernels
	Peer       *peer.Plan    // the kernel over peers' memory that the Spec names; nil for others
	hierarchy  *hierarchy    // RCCL's AllGather over nodes and then within them; nil for others
	Result     exec.Result
	Host       units.Time // what its launch costs the host, where that is shown; else 0
	Checked    bool       // the plan was proved
	OfSchedule bool       // the plan is of a schedule of others
	NotProved  string     // what of the plan was too large for its proof; empty: nothing
	Draws      *Draws     // of hashed routes; nil where no draw matters, or the Spec has a seed
	Best       *Outcome   // the fastest of all choices; nil where rivals were not simulated
}

// SendsAndReceives reports whether the operation is made of sends and receives;
// one of a single rank may be a copy, or nothing.
func (o *Outcome) SendsAndReceives() bool {
	if o.Plan == nil || !o.Plan.Req.Func.IsP2P() {
		return false
	}
	one := o.Plan.OneRank()
	return one == plan.NotOneRank || one == plan.SelfSend
}

// Label names an outcome's choice as NCCL's log does: "RING/LL128".
func (o *Outcome) Label() string { return o.Choice.Algo.LogName() + "/" + o.Choice.Proto.LogName() }
