package gen

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// Error is a Config that cannot be.
type Error struct {
	Option  string // of workload gen, without dashes
	Problem string
	Hint    string // what to write instead
}

// Error names the option, the problem and what to write.
func (e *Error) Error() string { return "--" + e.Option + ": " + e.Problem + "; " + e.Hint }

// Bounds of what is made.
const (
	maxSize  = 1 << 40
	maxWorld = 1 << 16
	maxSteps = 30_000_000
	// maxElements bounds tensors, so that bytes of all ranks fit into 64 bits.
	maxElements = 1 << 44
)

// largest is the largest value not above most that divides n.
func largest(n, most int64) int64 {
	for d := min(most, n); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}

// ranges checks each value by itself.
func (c *Config) ranges() *Error {
	for _, x := range []struct {
		option string
		v      int64
		most   int64
	}{
		{"layers", c.Layers, 1 << 14}, {"hidden", c.Hidden, 1 << 20}, {"heads", c.Heads, 1 << 16},
		{"kv-heads", c.KVHeads, 1 << 16}, {"ffn", max(c.FFN, c.ExpertFFN), 1 << 24},
		{"vocab", c.Vocab, 1 << 26}, {"seq", c.Seq, 1 << 26}, {"micro-batch", c.MicroBatch, 1 << 20},
		{"global-batch", c.GlobalBatch, 1 << 24},
		{"tp", int64(c.TP), maxWorld}, {"pp", int64(c.PP), maxWorld}, {"dp", int64(c.DP), maxWorld},
		{"ep", int64(c.EP), maxWorld}, {"cp", int64(c.CP), maxWorld},
		{"virtual", int64(c.Virtual), 1 << 10}, {"bucket", int64(c.Bucket), maxSize},
		{"iterations", int64(c.Iterations), 1000},
		{"host-launch", int64(c.Launch/units.Microsecond) + 1, 100_001},
	} {
		if x.v < 1 || x.v > x.most {
			return &Error{x.option, fmt.Sprintf("%d", x.v), fmt.Sprintf("write a number from 1 to %d",
				x.most)}
		}
	}
	switch {
	case c.FSDP < 0 || c.FSDP > 3:
		return &Error{"fsdp", fmt.Sprintf("%d is no stage of ZeRO", c.FSDP), "write 0 (none), 1, 2 or 3"}
	case c.Shard < 0 || c.Shard > 0 && (c.FSDP == 0 || c.DP*c.CP%c.Shard != 0):
		return &Error{"shard", fmt.Sprintf("%d of %d data and context parallel ranks with --fsdp %d", c.Shard,
			c.DP*c.CP, c.FSDP), "write a divisor of --dp times --cp, and --fsdp 1, 2 or 3"}
	case c.Shard > 0 && c.Experts > 0:
		return &Error{"shard", "hybrid sharding of experts is not made", "leave --shard out"}
	case c.Prefetch < 0 || c.Prefetch > 1000:
		return &Error{"prefetch", fmt.Sprintf("%d layers", c.Prefetch), "write a number from 0 to 1000"}
	case c.Experts < 0 || c.Experts > 1<<16 || c.Experts > 0 && (c.TopK < 1 || c.TopK > c.Experts):
		return &Error{"experts", fmt.Sprintf("%d experts of which a token goes to %d", c.Experts, c.TopK),
			"write --experts 8 --top-k 2"}
	case !(c.Capacity > 0 && c.Capacity <= 1000):
		return &Error{"capacity", fmt.Sprintf("%g", c.Capacity), "write 1, or more for room that is not used"}
	case c.byKernel() && c.Capacity != 1:
		return &Error{"capacity", c.Dispatch + " sends each token where it goes and no room beside",
			"leave it out, or write --dispatch " + ByNCCL}
	case c.Recompute && c.Modules != 0:
		return &Error{"recompute", "a layer done again has its parts done again",
			"write full or " + c.Modules.String()}
	case c.Modules.has(Operators) && (c.Modules != Operators || c.Experts > 0 || c.KVRank > 0 ||
		c.SSMHeads > 0):
		return &Error{"recompute", "ops is made of dense layers, and by itself",
			"write other modules, or full"}
	case c.Type.Size() == 0 || c.GradType.Size() == 0 || c.Type == coll.Int8:
		return &Error{"dtype", "no type of parameters", "write bfloat16, half or float"}
	case !(c.GPU.FLOPS > 0 && c.GPU.Memory > 0 && c.GPU.Efficiency > 0 && c.GPU.Efficiency <= 1 &&
		c.GPU.MemoryEfficiency > 0 && c.GPU.MemoryEfficiency <= 1):
		return &Error{"efficiency", "a roofline without peaks, or an efficiency that is none",
			"write a fraction of the peak above 0, at most 1"}
	}
	return nil
}

// check finds what cannot be divided.
func (c *Config) check() error {
	c.SequenceParallel = c.SequenceParallel && c.TP > 1 // there is no rank to divide with
	if err := c.ranges(); err != nil {
		return err
	}
	for _, x := range []struct {
		bad    bool
		option string
		what   string
		n, by  int64
		most   int64
	}{
		{c.HeadDim == 0 && c.KVRank == 0 && c.Hidden%c.Heads != 0, "heads",
			"hidden size %d is not a multiple of %d heads", c.Hidden, c.Heads,
			c.Heads},
		{c.Heads%c.KVHeads != 0, "kv-heads", "%d heads are not a multiple of %d for keys and values", c.Heads,
			c.KVHeads, c.KVHeads},
		{c.Heads%c.among() != 0, "tp", "%d heads cannot be divided by %d", c.Heads, int64(c.TP),
			int64(c.TP)},
		{c.KVHeads%c.among() != 0 && c.among()%c.KVHeads != 0, "tp",
			"%d heads of keys and values cannot be divided by %d", c.KVHeads,
			int64(c.TP), int64(c.TP)},
		{c.FFN%c.wide() != 0, "tp", "a feed-forward size of %d cannot be divided by %d", c.FFN,
			int64(c.TP), int64(c.TP)},
		{c.SharedFFN%c.wide() != 0, "tp", "a shared expert of %d cannot be divided by %d", c.SharedFFN,
			int64(c.TP), int64(c.TP)},
		{c.SSMHeads%c.among() != 0, "tp", "%d heads of a state space cannot be divided by %d", c.SSMHeads,
			int64(c.TP), int64(c.TP)},
		{c.Seq%int64(c.CP) != 0, "cp", "sequences of %d cannot be divided by %d", c.Seq, int64(c.CP),
			int64(c.CP)},
		{c.SequenceParallel && c.Seq/int64(c.CP)%int64(c.TP) != 0, "sp",
			"parts of %d of a sequence cannot be divided by --tp %d", c.Seq / int64(c.CP), int64(c.TP),
			int64(c.TP)},
		// the embedding and the head may be stages of their own
		{c.Layers+c.MTP+2 < int64(c.PP*c.Virtual), "pp", "%d layers cannot be divided into %d stages",
			c.Layers, int64(c.PP * c.Virtual), c.Layers},
		{c.perStage()%c.EP != 0, "ep",
			"%d ranks of a stage (tp·cp·dp) are not a multiple of %d: experts are divided among them",
			int64(c.perStage()), int64(c.EP), int64(c.EP)},
		{c.Experts > 0 && c.Experts%c.EP != 0, "ep", "%d experts cannot be divided by %d", int64(c.Experts),
			int64(c.EP), int64(c.EP)},
		{c.GlobalBatch%(c.MicroBatch*int64(c.DP)) != 0, "global-batch",
			"%d sequences are not a multiple of micro-batch times dp, %d", c.GlobalBatch,
			c.MicroBatch * int64(c.DP), -1},
	} {
		if !x.bad {
			continue
		}
		hint := fmt.Sprintf("write --%s %d", x.option, largest(x.n, x.most))
		switch {
		case x.most < 0:
			hint = fmt.Sprintf("write --global-batch %d", (x.n/x.by+1)*x.by)
		case x.option == "sp":
			hint = fmt.Sprintf("write --tp %d", largest(x.n, x.most))
		}
		return &Error{x.option, fmt.Sprintf(x.what, x.n, x.by), hint}
	}
	return c.checkConflicts()
}

// checkConflicts rejects options that exclude each other.
func (c *Config) checkConflicts() error {
	m := c.GlobalBatch / (c.MicroBatch * int64(c.DP))
	switch {
	case c.Schedule == Interleaved && (c.Virtual < 2 || c.PP < 2):
		return &Error{"schedule", "interleaved needs several stages on each of several ranks",
			"add --virtual 2 and --pp 2 or more"}
	case c.Schedule != Interleaved && c.Virtual > 1:
		return &Error{"virtual", "only the interleaved schedule has several stages a rank",
			"write --schedule interleaved"}
	case c.Schedule == Interleaved && m%int64(c.PP) != 0:
		return &Error{"global-batch",
			fmt.Sprintf("%d microbatches are not a multiple of %d stages, which the interleaved schedule "+
				"needs", m, c.PP),
			fmt.Sprintf("write --global-batch %d", (m/int64(c.PP)+1)*int64(c.PP)*c.MicroBatch*int64(c.DP))}
	case c.EP > 1 && c.Experts == 0:
		return &Error{"ep", "there are no experts to divide", "add --experts 8 --top-k 2"}
	case c.Experts > 0 && c.TP > 1 && !c.SequenceParallel && c.Phase == Train:
		return &Error{"experts",
			"without sequence parallelism each tensor parallel rank would send the same tokens", "add --sp"}
	case c.FSDP > 0 && c.DP*c.CP < 2:
		return &Error{"fsdp", "there is one data parallel rank", "write --dp 2 or more"}
	case int64(c.TP)*int64(c.PP) > maxWorld || int64(c.TP)*int64(c.PP)*int64(c.CP) > maxWorld ||
		int64(c.TP)*int64(c.PP)*int64(c.CP)*int64(c.DP) > maxWorld:
		return &Error{"dp", fmt.Sprintf("more than %d ranks", maxWorld), "write smaller groups"}
	}
	return nil
}

// size refuses jobs of m microbatches that are too large to write down.
func (c *Config) size(m int) error {
	world := c.TP * c.PP * c.CP * c.DP
	if total := float64(m) * math.Ceil(float64(c.Layers+c.MTP)/float64(c.PP)) * float64(40+8*c.CP) *
		float64(c.Iterations) *
		float64(world); total > maxSteps {
		return tooMany(total, maxSteps)
	}
	return nil
}

// tensors refuses sizes that do not fit into 64 bits.
func (c *Config) tensors() error {
	widest := float64(max(c.Hidden, c.FFN, c.Vocab))
	if tokens := float64(c.MicroBatch) * float64(c.Seq) * max(c.Capacity, 1) *
		float64(max(c.TopK, 1)); tokens*widest > maxElements {
		return &Error{"micro-batch", fmt.Sprintf("activations of %.3g elements", tokens*widest),
			"write shorter sequences or a smaller microbatch"}
	}
	if params := float64(c.Layers)*float64(c.Hidden)*(4*float64(c.Hidden)+
		3*float64(max(c.FFN, c.ExpertFFN, c.SharedFFN))*float64(max(c.Experts, 1))) +
		2*widest*float64(c.Hidden); params > maxElements {
		return &Error{"hidden", fmt.Sprintf("%.3g parameters", params), "write a smaller model"}
	}
	return nil
}

func tooMany(steps float64, most int) error {
	return &Error{"global-batch", fmt.Sprintf("the job has about %.0f steps, more than %d", steps, most),
		"write fewer microbatches, ranks or iterations"}
}

// steps are those of all ranks.
func (g *generator) steps() (n int) {
	for _, at := range g.p.Of {
		n += len(g.p.Lists[at].Steps)
	}
	return n
}
