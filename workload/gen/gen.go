// Package gen makes the program of a transformer's training from hyper-parameters and
// the way it is divided: tensor, sequence, pipeline, data, expert and context parallel,
// fully sharded data parallel.
//
// In: a Config. Out: a Job, with the program and the bytes that each rank moves by
// group and purpose, to be checked by hand (docs/WORKLOADS.md has the formulas).
//
// Ranks count tensor parallel first, then context, data (experts within data) and
// pipeline parallel, as Megatron-LM's default order tp-cp-ep-dp-pp.
//
// A Model has what that needs of a transformer: sizes, kinds of layers, parameters. Models are known by name,
// or read from a config.json as Hugging Face keeps it.
//
// What it must not know: machines, plans, files.
package gen

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
)

// Schedule is the order in which a stage of a pipeline takes microbatches.
type Schedule uint8

// Schedules: all forward then all backward (Huang et al., GPipe, 2019); one forward one
// backward (Narayanan et al., 2021); the same with several stages a rank; backward passes
// divided into those of inputs and of weights (Qi et al., Zero Bubble, 2023, ZB-H1).
const (
	OneFOneB Schedule = iota
	GPipe
	Interleaved
	ZeroBubble
	numSchedules
)

var scheduleNames = [numSchedules]string{"1f1b", "gpipe", "interleaved", "zb-h1"}

// String is the word of --schedule.
func (s Schedule) String() string { return scheduleNames[s] }

// Schedules are the words of --schedule.
func Schedules() []string { return scheduleNames[:] }

// Config is a model and how its training is divided. Sizes are of the whole model.
type Config struct {
	// Model is what is trained. With Tied, first and last stages of a pipeline each have the matrix of
	// the embedding, and sum its gradients up (Shoeybi et al., 2019, section 5).
	Model
	Seq int64 // tokens of a sequence
	// MicroBatch and GlobalBatch are sequences.
	MicroBatch, GlobalBatch int64
	// Type is that of parameters and activations, GradType that in which gradients are
	// reduced.
	Type, GradType coll.DataType
	// Precision is that of the operands of layers' matrix products.
	Precision workload.Precision

	TP int
	// SequenceParallel divides what lies between the tensor parallel parts along the
	// sequence (Korthikanti et al., 2022).
	SequenceParallel bool
	// TPOverlap lets a product run beside the call that brings its input or sums its output, as Transformer
	// Engine's user buffers do part by part.
	TPOverlap bool
	PP        int
	Schedule  Schedule
	// Virtual is how many stages each rank has with Interleaved.
	Virtual int
	DP      int
	// Bucket is the capacity of a bucket of gradients in bytes.
	Bucket units.Bytes
	// NoOverlap reduces gradients when the backward pass is over, not during it.
	NoOverlap bool
	// NoP2POverlap launches the receive of a pass of the interleaved schedule when the pass before it ends,
	// not beside that one (Megatron-LM's --no-overlap-p2p-communication).
	NoP2POverlap bool
	// FSDP is the stage of ZeRO: 0 none, 1 the optimizer's state is divided, 2 gradients
	// too, 3 parameters too (Rajbhandari et al., 2020; Zhao et al., 2023).
	FSDP int
	// Shard is among how many data and context parallel neighbours ZeRO divides; each of them sums its part
	// up with those of the other groups (hybrid sharding: Zhao et al., 2023, section 3.2.2). 0: among all.
	Shard int
	// Prefetch is how many layers ahead parameters are gathered.
	Prefetch int
	// EP divides the Experts of each layer among the ranks of a stage. Capacity multiplies what each pair
	// of ranks exchanges over an even division.
	EP       int
	Capacity float64
	CP       int
	// Ring passes keys and values around (Liu et al., Ring Attention, 2023); otherwise
	// they are gathered.
	Ring bool
	// Recompute: a layer's forward pass is done again in its backward pass, all of it; Modules: parts of it.
	Recompute bool
	Modules   Modules
	// Fit: of those the least with which the job fits into the GPU's memory.
	Fit bool

	// Phase is training, or a step of serving MicroBatch requests of Length tokens. DPAttention divides
	// the requests among tensor parallel ranks, each of which has all heads. AllReduce is the kernel that
	// sums up what they have, as of run --kernel, or ByNCCL; Dispatch is how tokens go to experts.
	Phase               Phase
	Length              int64
	DPAttention         bool
	AllReduce, Dispatch string
	// Normed: the kernel of AllReduce takes the norm that follows, too.
	Normed bool
	// Prompt is the number of tokens of prompts that a step of decoding processes too (chunked prefill).
	Prompt int64
	// KVFrom ranks behind those that decode write a request's KV cache to them meanwhile.
	KVFrom int

	Iterations int
	// Launch is what the host takes for an operator; 0: nothing is known of the host. Graphs are launched
	// in its place.
	Launch units.Time
	Graphs Graphs
	GPU    Roofline
	// Class is what computations take; nil: what the roofline says.
	Class *compute.Class
	// Times are measured times of operations by name, which override the roofline.
	Times map[string]units.Time
}

// Roofline is a GPU's peak compute and memory bandwidth, with the efficiencies reached.
type Roofline struct {
	Name string
	// FLOPS is the dense peak of the type, per second; Memory bytes per second.
	FLOPS, Memory float64
	Capacity      units.Bytes // of its memory
	// Efficiency of matrix products and of memory, as fractions of the peaks.
	Efficiency, MemoryEfficiency float64
	// Overhead is what each operation takes besides.
	Overhead units.Time
}

// Job is a generated program, with its tables of traffic and computations.
type Job struct {
	Folded       *workload.Folded
	Microbatches int
	Params       int64 // of the model
	Fullest      int   // rank whose memory Folded has
	Traffic      []Traffic
	Operations   []Operation
	// Recomputed is what the fullest GPU would hold where Config.Fit has set what is computed again, Again in
	// the words of --recompute; 0: it has not.
	Recomputed units.Bytes
	Again      string
	// FromRoofline are operations that the times of the Config do not have, but a class or a roofline.
	FromRoofline []string
}

// Traffic is the bytes that calls of one purpose move in an iteration.
type Traffic struct {
	Kind string `json:"kind"`
	What string `json:"what"`
	Op   string `json:"op"`
	// Ranks of a group; Groups of the job.
	Ranks  int `json:"ranks"`
	Groups int `json:"groups"`
	// Bytes of a call: NCCL's size, that is of all ranks for all_gather and
	// reduce_scatter, of a rank otherwise.
	Bytes int64 `json:"bytes"`
	// Formula is what Bytes are the product of, in the words of docs/WORKLOADS.md.
	Formula string `json:"formula"`
	// Calls a rank, the fewest and the most.
	CallsMin int64 `json:"callsMin"`
	CallsMax int64 `json:"callsMax"`
	// BytesPerRank is Bytes times CallsMax; SentPerRank is what a rank sends for it at
	// least.
	BytesPerRank int64 `json:"bytesPerRank"`
	SentPerRank  int64 `json:"sentPerRank"`
}

// Operation is one computation of the model, with its FLOPs and bytes.
type Operation struct {
	Name   string  `json:"name"`
	FLOPs  int64   `json:"flops"`
	Bytes  int64   `json:"bytes"`
	Us     float64 `json:"us"`
	Source string  `json:"source"` // class, roofline or file
}

// Program returns the program of all ranks.
func (j *Job) Program() *workload.Program {
	p, err := j.Folded.Unfold()
	if err != nil { // each rank is in the groups that it calls on, and the steps were counted
		panic(err)
	}
	return p
}

// Make generates a training job from hyper-parameters. The error is an *Error.
func Make(c Config) (*Job, error) {
	if err := c.serving(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.tensors(); err != nil {
		return nil, err
	}
	recomputed := c.fit()
	g, err := fitting(&c)
	if err != nil {
		return nil, err
	}
	g.p.GPU = workload.GPU{Name: c.GPU.Name, Type: c.Type, Efficiency: c.GPU.Efficiency,
		MemoryEfficiency: c.GPU.MemoryEfficiency, Overhead: c.GPU.Overhead}
	if c.Class != nil {
		g.p.GPU = workload.GPU{Name: c.GPU.Name, Class: c.Class.Name}
	}
	g.p.Model = workload.Trained{Name: c.Name, Params: g.allParams(), Tokens: c.GlobalBatch * c.Seq,
		FLOPs: clip(c.FLOPs(c.Seq))}
	if c.Phase != Train {
		g.p.Model.Phase = c.Phase.String()
		seq := c.Seq
		if c.Phase == Decode { // FLOPs has the mean of a sequence's tokens, which see half of it
			seq = 2 * c.Length
		}
		g.p.Model.FLOPs = clip(c.FLOPs(seq) / 3) // without the backward pass
	}
	if len(g.rounds) > 1 {
		g.p.Model.Micro = [3]int64{int64(g.rounds[0]), int64(g.rounds[1]), int64(g.whole)}
	}
	memory, rank := g.memory()
	g.p.Memory = memory
	j := &Job{Folded: g.p, Fullest: rank, Microbatches: g.whole, Params: g.allParams(), Traffic: g.traffic(),
		Operations: g.operations, Recomputed: recomputed}
	if j.Again = c.Modules.String(); c.Recompute {
		j.Again = "full"
	}
	for _, o := range g.operations {
		if len(c.Times) > 0 && o.Source != fromFile {
			j.FromRoofline = append(j.FromRoofline, o.Name)
		}
	}
	return j, nil
}
