package jobs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
	"github.com/simccl/simccl/workload/gen"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// WorkloadGenOptions are the flags and arguments of gen.
type WorkloadGenOptions struct {
	Model gen.Config // the members that are numbers
	Name  string     // a model by name, or a config.json; the members that are not 0 go first
	gen.Words
	Bucket     string  // a size
	GPU        string  // whose class, or roofline
	Class      string  // a file in place of the GPU's class
	Efficiency float64 // 0: the class says it
	Attention  string
	Power      float64 // W; 0: the data sheet's
	Memory     float64 // fraction of the memory's peak bandwidth
	Times      string  // a file in place of the roofline
	Launch     float64 // of an operator, in microseconds
	Out        string  // a file; empty: standard output
	Phase      string
	Batch      int64 // requests of a step of serving
}

func generate(a *cli.App) *cobra.Command {
	var o WorkloadGenOptions
	c := &cobra.Command{Use: "gen",
		Short: "Make a job from hyper-parameters: a transformer and how its training is divided",
		Long: `gen makes the training of a transformer: tensor parallel with --sp (sequence
parallel), pipelines by --schedule, data parallel in buckets, ZeRO by --fsdp, experts
and context parallel. It writes simccl's text and prints what each group moves, to be
checked by hand (docs/WORKLOADS.md has the formulas). --model is a model by name or a
config.json of Hugging Face; other sizes that are given go first. Computations take what
the class of --gpu says, an estimate, or a file of times.
Ranks: tp x cp x dp x pp. Microbatches: global-batch / (micro-batch x dp).`,
		Example: `  simccl workload gen --model llama-3.1-70b --seq 8192 --tp 4 --sp --pp 4 --dp 2 --global-batch 64 --gpu h100 -o job.txt
  simccl workload gen --layers 8 --hidden 1024 --heads 8 --tp 2 --sp --pp 2 --dp 2 --global-batch 16 -o job.txt
  simccl workload gen --layers 4 --hidden 1024 --heads 8 --dp 8 --fsdp 3 --global-batch 8 -o job.txt
  simccl workload gen --layers 4 --hidden 1024 --heads 8 --dp 4 --ep 4 --experts 8 --top-k 2 --global-batch 4 -o job.txt`,
		Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	flags.Register(c.Flags(), o.network(), o.division(), o.serving(), o.cost())
	c.Flags().Lookup("recompute").NoOptDefVal = "full"
	return c
}

// network returns the flags of the model.
func (o *WorkloadGenOptions) network() flags.Group {
	m := &o.Model
	return flags.In("Neural network",
		flags.Of(&o.Name, "model", "", "", "`MODEL` by name, such as llama-3.1-70b, deepseek-v3 or "+
			"qwen-3-30b-a3b, or a FILE, config.json of Hugging Face"),
		flags.Of(&m.Layers, "layers", "", 0, "number of layers (default: the model's, or 32)"),
		flags.Of(&m.Hidden, "hidden", "", 0, "hidden size (default: the model's, or 4096)"),
		flags.Of(&m.Heads, "heads", "", 0, "heads of attention (default: the model's, or 32)"),
		flags.Of(&m.KVHeads, "kv-heads", "", 0, "heads of keys and values (default: as --heads)"),
		flags.Of(&m.FFN, "ffn", "", 0,
			"size of the feed-forward network, or of an expert (default: 4 x hidden)"),
		flags.Of(&m.Gated, "gated", "", false, "the feed-forward network has three matrices (SwiGLU)"),
		flags.Of(&m.Tied, "tied", "", false, "the head multiplies by the embedding's matrix"),
		flags.Of(&m.Vocab, "vocab", "", 0, "size of the vocabulary, padded to what --tp divides "+
			"(default: the model's, or 32000)"),
		flags.Of(&m.Seq, "seq", "", 4096, "tokens of a sequence"),
		flags.Of(&m.MicroBatch, "micro-batch", "", 1, "sequences of a microbatch"),
		flags.Of(&m.GlobalBatch, "global-batch", "", 0,
			"sequences of an iteration (default: one microbatch a data parallel rank, "+
				"as many as stages with --pp)"),
		flags.Of(&o.Type, "dtype", "", "bfloat16", "`TYPE` of parameters and activations"),
		flags.Of(&o.GradType, "grad-dtype", "", "",
			"`TYPE` in which gradients are reduced (default: as --dtype)"),
		flags.Of(&o.Precision, "precision", "", "bf16", "`PRECISION` of the operands of layers' matrix "+
			"products: "+strings.Join(workload.Precisions(), ", ")),
		flags.Of(&m.Experts, "experts", "", 0, "experts of each layer; 0: a feed-forward network"),
		flags.Of(&m.TopK, "top-k", "", 0, "experts that a token goes to (default: the model's, or 1)"),
		flags.Of(&m.Capacity, "capacity", "", 1,
			"what ranks exchange for experts, as a multiple of an even division"))
}

// division returns the flags of the parallelism.
func (o *WorkloadGenOptions) division() flags.Group {
	m := &o.Model
	return flags.In("Division over ranks",
		flags.Of(&m.TP, "tp", "", 1, "tensor parallel ranks"),
		flags.Of(&m.SequenceParallel, "sp", "", false,
			"sequence parallel among tensor parallel ranks; no effect with --tp 1"),
		flags.Of(&m.TPOverlap, "tp-overlap", "", false,
			"products run beside the tensor parallel calls that bring their input or sum their output"),
		flags.Of(&m.PP, "pp", "", 1, "pipeline stages"),
		flags.Of(&o.Schedule, "schedule", "", "", "`ORDER` of microbatches: "+
			strings.Join(gen.Schedules(), ", ")+" (default 1f1b, interleaved with --virtual 2 or more)"),
		flags.Of(&m.NoP2POverlap, "no-p2p-overlap", "", false, "messages between interleaved stages come "+
			"after the pass before, not beside it"),
		flags.Of(&m.Virtual, "virtual", "", 0, "stages of a rank with --schedule interleaved (default 2)"),
		flags.Of(&m.DP, "dp", "", 1, "data parallel ranks"),
		flags.Of(&o.Bucket, "bucket", "", "25MB", "`SIZE` of a bucket of gradients"),
		flags.Of(&m.NoOverlap, "no-overlap", "", false,
			"reduce gradients after the backward pass, not beside it"),
		flags.Of(&m.FSDP, "fsdp", "", 0,
			"stage of ZeRO: 1 (optimizer), 2 (and gradients), 3 (and parameters)"),
		flags.Of(&m.Shard, "shard", "", 0,
			"data and context parallel ranks among which --fsdp divides, which sum up with those of other "+
				"groups (hybrid sharding, HSDP); 0: all"),
		flags.Of(&m.Prefetch, "prefetch", "", 1, "layers whose parameters are gathered ahead"),
		flags.Of(&m.EP, "ep", "", 1, "expert parallel ranks, of those of a stage (tp x cp x dp)"),
		flags.Of(&m.CP, "cp", "", 1, "context parallel ranks"),
		flags.Of(&o.CP, "cp-mode", "", "ring", "`HOW` keys and values come: ring or all-gather"),
		flags.Of(&o.Recompute, "recompute", "", "auto",
			"`WHAT` of a layer's forward pass is done again in its backward pass: none, full, selective "+
				"(core_attn), ops (torchtitan's, by operator), some of "+
				strings.ReplaceAll(gen.AllModules.String(), ",", ", ")+
				", or auto: the least with which the job fits"),
		flags.Of(&m.Iterations, "iterations", "", 1, "iterations"))
}

// serving returns the flags of a step of serving.
func (o *WorkloadGenOptions) serving() flags.Group {
	m := &o.Model
	return flags.In("Serving",
		flags.Of(&o.Phase, "phase", "", "train", "`PHASE`: "+strings.Join(gen.Phases(), ", ")+
			"; one step of serving, of all tokens of its prompts or of one more token a request"),
		flags.Of(&o.Batch, "batch", "", 0, "requests of a step (default 1)"),
		flags.Of(&m.Length, "context", "", 0,
			"tokens of a request's prompt, or those before the one that is "+
				"decoded (default: --seq)"),
		flags.Of(&m.DPAttention, "dp-attention", "", false,
			"each of the --tp ranks has all heads and its part of the requests"),
		flags.Of(&m.KVFrom, "kv-from", "", 0, "with --phase decode so many ranks more, which have filled "+
			"the KV cache of a request of --context tokens and write it to the others meanwhile"),
		flags.Of(&m.AllReduce, "all-reduce", "", peer.VLLM, "`KERNEL` that sums up what --tp ranks have: "+
			strings.Join(append(peer.AllReduceKernels(), gen.ByNCCL), ", ")),
		flags.Of(&m.Dispatch, "dispatch", "", gen.Gathered,
			"`HOW` tokens go to experts, in training "+gen.ByNCCL+
				" unless it says a kernel, in serving with --dp-attention: "+
				strings.Join(append([]string{gen.Gathered, gen.ByNCCL}, peer.ExpertKernels()...), ", ")),
		flags.Of(&m.Prompt, "prompt-tokens", "", 0,
			"with --phase decode tokens of prompts that a step processes too (chunked prefill)"))
}

// cost returns the flags of computation times.
func (o *WorkloadGenOptions) cost() flags.Group {
	return flags.In("Time and output",
		flags.Of(&o.GPU, "gpu", "", "h100", "times are of this `GPU`: "+strings.Join(gen.GPUs(), ", ")),
		flags.Of(&o.Class, "compute-class", "", "", "class of the GPU from a `FILE`, which simccl calibrate "+
			"compute writes"),
		flags.Of(&o.Attention, "attention", "", "newest", "`KERNELS` of attention: newest (cuDNN's, "+
			"FlashAttention-3) or flash-2 (FlashAttention-2, which PyTorch has of its own)"),
		flags.Of(&o.Power, "power-limit", "", 0.0,
			"the GPU's limit of power in `WATTS` (default: the data sheet's)"),
		flags.Of(&o.Efficiency, "efficiency", "", 0.0,
			"a roofline in place of the class: what matrix products reach of the peak"),
		flags.Of(&o.Memory, "memory-efficiency", "", 0.0,
			"a roofline in place of the class: what memory reaches of its peak"),
		flags.Of(&o.Times, "times", "", "",
			"times of operations, which go first: a `FILE`, CSV (op,us) or JSON ({\"op\": us})"),
		flags.Of(&o.Graphs, "cuda-graphs", "", "none", "`WHAT` is launched by graphs in place of the host: "+
			"none, layers (but for what experts compute) or full (an iteration)"),
		flags.Of(&o.Launch, "host-launch", "", gen.DefaultLaunch.Micros(),
			"what the host takes for an operator, in microseconds (of PyTorch's "+
				"DTensor 150 more); 0: no host"),
		flags.Of(&o.Out, "out", "o", "", "write to `FILE` instead of standard output"))
}

// config converts the flags to the generator's configuration.
func (o *WorkloadGenOptions) config(a *cli.App) (gen.Config, error) {
	c := o.Model
	if err := o.sizes(a, &c.Model); err != nil {
		return c, err
	}
	if phase, ok := gen.ParsePhase(o.Phase); ok {
		c.Phase = phase
	} else {
		return c, fail.Usage("--phase %s: write one of %s", o.Phase, strings.Join(gen.Phases(), ", "))
	}
	if c.Phase != gen.Train {
		c.MicroBatch, c.Length = cmp.Or(o.Batch, c.MicroBatch), cmp.Or(c.Length, c.Seq)
	}
	c.GlobalBatch = cmp.Or(c.GlobalBatch, c.MicroBatch*int64(max(c.DP, 1))*int64(max(c.PP, 1)))
	if err := o.Apply(&c); err != nil {
		return c, fail.Argument(err)
	}
	if !(o.Launch >= 0 && o.Launch <= 1e5) {
		return c, fail.Usage("--host-launch %g: write microseconds, from 0 to 100000", o.Launch)
	}
	for _, word := range []struct {
		flag, is string
		of       []string
	}{{"all-reduce", c.AllReduce, append(peer.AllReduceKernels(), gen.ByNCCL)},
		{"dispatch", c.Dispatch, append([]string{gen.Gathered, gen.ByNCCL}, peer.ExpertKernels()...)}} {
		if !slices.Contains(word.of, word.is) {
			return c, fail.Usage("--%s %s: write one of %s", word.flag, word.is, strings.Join(word.of, ", "))
		}
	}
	c.Normed = c.AllReduce == peer.OneShotPushNorm
	c.Launch = units.Time(o.Launch * float64(units.Microsecond))
	bucket, err := units.ParseBytes(o.Bucket)
	if err != nil {
		return c, fail.Usage("--bucket: %v", err)
	}
	c.Bucket = bucket
	if c.Experts > 0 && c.TP > 1 && !c.SequenceParallel && c.Phase == gen.Train {
		c.SequenceParallel = true
		fmt.Fprintln(a.Err,
			"simccl: --sp is taken for granted: with experts, tensor parallel ranks divide the "+
				"tokens")
	}
	return c, o.times(a, &c)
}

// sizes sets the sizes of the model: those of --model, overridden by the flags.
func (o *WorkloadGenOptions) sizes(a *cli.App, given *gen.Model) error {
	m := &gen.Model{Layers: 32, Hidden: 4096, Heads: 32, Vocab: 32000, TopK: 1}
	if o.Name != "" {
		known, err := o.named(a)
		if err != nil {
			return err
		}
		m = known
	}
	for _, x := range []struct{ to, from *int64 }{{&m.Layers, &given.Layers}, {&m.Hidden, &given.Hidden},
		{&m.Heads, &given.Heads}, {&m.KVHeads, &given.KVHeads}, {&m.FFN, &given.FFN},
		{&m.Vocab, &given.Vocab}} {
		if *x.from != 0 {
			*x.to = *x.from
		}
	}
	if given.Experts != 0 {
		m.Experts = given.Experts
	}
	if given.TopK != 0 {
		m.TopK = given.TopK
	}
	m.Gated, m.Tied = m.Gated || given.Gated, m.Tied || given.Tied
	m.KVHeads = cmp.Or(m.KVHeads, m.Heads)
	if m.FFN == 0 && m.ExpertFFN == 0 {
		m.FFN = 4 * m.Hidden
	}
	if n := int64(len(m.Pattern)); n > m.Layers && m.Layers > 0 {
		m.Pattern = m.Pattern[:m.Layers]
	} else if n > 0 && n < m.Layers {
		return fail.Usage("--layers %d: %s has %d layers of several kinds; write at most that many", m.Layers,
			o.Name, n)
	}
	*given = *m
	return nil
}

// named returns the model of --model, by name or from a file.
func (o *WorkloadGenOptions) named(a *cli.App) (*gen.Model, error) {
	m, like := gen.FindModel(o.Name)
	if m != nil {
		return m, nil
	}
	if _, err := os.Stat(a.Path(o.Name)); err != nil {
		if len(like) > 0 {
			return nil, fail.Usage("--model %s: several models have these words; write one of %s", o.Name,
				strings.Join(like, ", "))
		}
		hint := "give its config.json"
		if n := config.Nearest(strings.ToLower(o.Name), gen.ModelNames()); n != "" {
			hint = "did you mean " + n
		}
		return nil, fail.Usage("--model %s: no model of that name, nor a file; %s; all: %s", o.Name, hint,
			strings.Join(gen.ModelNames(), ", "))
	}
	data, err := a.ReadAs(o.Name, gen.MaxConfig, inputs.HFConfig)
	if err != nil {
		return nil, err
	}
	m, err = gen.ParseModel(data, o.Name)
	if err != nil {
		return nil, err
	}
	m.Name = strings.TrimSuffix(filepath.Base(o.Name), ".json")
	if m.LeftOut != "" && !a.Quiet {
		fmt.Fprintf(a.Err, "simccl: %s: %s is left out: the model is its decoder alone\n", o.Name, m.LeftOut)
	}
	return m, nil
}

// variant applies the kernels of attention and the limit of power to the class.
func (o *WorkloadGenOptions) variant(c *gen.Config) error {
	ok := c.Class != nil
	switch o.Attention {
	case "newest":
		ok = true
	case "flash-2":
		if ok {
			c.Class, ok = c.Class.WithFlash2()
		}
	default:
		return fail.Usage("--attention %s: write newest or flash-2", o.Attention)
	}
	if !ok {
		return fail.Usage("--attention flash-2: its times are known of Hopper's class alone; leave it out")
	}
	if o.Power == 0 {
		return nil
	}
	if c.Class == nil || c.Class.Power == 0 {
		return fail.Usage("--power-limit %g: the class of %s has no limit of power; leave it out", o.Power,
			o.GPU)
	}
	limited, ok := c.Class.Limited(o.Power)
	if !ok {
		return fail.Usage("--power-limit %g: write %g to %g", o.Power, c.Class.Power/2, c.Class.Power)
	}
	c.Class = limited
	return nil
}

// times sets how computation times are found: by a class, or by a roofline if efficiencies are given.
func (o *WorkloadGenOptions) times(a *cli.App, c *gen.Config) (err error) {
	var ok bool
	if c.GPU, ok = gen.Peak(o.GPU, c.Type); !ok {
		return fail.Usage("--gpu %s: write one of %s, or give --times", o.GPU, strings.Join(gen.GPUs(), ", "))
	}
	switch {
	case o.Class != "":
		data, err := a.Read(o.Class, compute.MaxFile)
		if err != nil {
			return err
		}
		if c.Class, err = compute.Parse(data, o.Class); err != nil {
			return err
		}
		if c.Class.Name != c.GPU.Name {
			return fail.Usage("--compute-class %s is of %s; write --gpu %s", o.Class, c.Class.Name,
				c.Class.Name)
		}
	case o.Efficiency != 0 || o.Memory != 0:
		c.GPU.Efficiency, c.GPU.MemoryEfficiency = cmp.Or(o.Efficiency, c.GPU.Efficiency), cmp.Or(o.Memory,
			c.GPU.MemoryEfficiency)
	default:
		c.Class, _ = compute.Find(o.GPU)
	}
	if err := o.variant(c); err != nil {
		return err
	}
	if o.Times != "" {
		data, err := a.ReadAs(o.Times, process.MaxSettings, inputs.OperationTimes)
		if err != nil {
			return err
		}
		if c.Times, err = readTimes(data, o.Times); err != nil {
			return fail.Input(err)
		}
	}
	return nil
}

// generated is the JSON output.
type generated struct {
	Ranks        int             `json:"ranks"`
	Microbatches int             `json:"microbatches"`
	Params       int64           `json:"params"`
	Traffic      []gen.Traffic   `json:"traffic"`
	Operations   []gen.Operation `json:"operations"`
	// Memory is the estimated memory use of the fullest GPU.
	Memory *workload.MemoryUse `json:"memoryBytesPerGpu"`
	Notes  []string            `json:"notes"`
	Text   string              `json:"text,omitempty"` // where it went to standard output
	Files  []string            `json:"files"`
}

// Run writes the job, and prints what its groups move.
func (o *WorkloadGenOptions) Run(_ context.Context, a *cli.App) error {
	c, err := o.config(a)
	if err != nil {
		return err
	}
	j, err := gen.Make(c)
	if err != nil {
		return fail.Argument(err)
	}
	r := generated{Ranks: j.Folded.Ranks(), Microbatches: j.Microbatches, Params: j.Params,
		Traffic: j.Traffic, Operations: j.Operations, Memory: j.Folded.Memory.Use(c.GPU.Capacity),
		Notes: notes(&c, j)}
	if j.Recomputed > 0 {
		r.Notes = append([]string{fmt.Sprintf("layers are computed again in the backward pass (--recompute "+
			"%s): otherwise the fullest GPU would hold %.1f GB of %.1f", j.Again,
			float64(j.Recomputed)/(1<<30),
			float64(c.GPU.Capacity)/(1<<30))}, r.Notes...)
	}
	if p := r.Memory.Problem(c.GPU.Name); p != "" {
		r.Notes = append([]string{p}, r.Notes...)
	}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	if r.Traffic == nil {
		r.Traffic = []gen.Traffic{}
	}
	made := result{Files: []string{}}
	if err := made.stream(a, o.Out, func(w io.Writer) error {
		_, err := io.WriteString(w, j.Folded.Format())
		return err
	}); err != nil {
		return err
	}
	r.Text, r.Files = made.Text, made.Files
	if a.JSON {
		return a.PrintJSON(r)
	}
	if len(r.Files) > 0 {
		return r.write(a.Out)
	}
	return r.write(a.Err) // the job went to standard output
}

// notes lists the estimates in the result.
func notes(c *gen.Config, j *gen.Job) (out []string) {
	roof := j.FromRoofline
	if len(c.Times) == 0 {
		roof = nil
		for _, o := range j.Operations {
			roof = append(roof, o.Name)
		}
	}
	if len(roof) > 0 {
		if k := c.Class; k != nil {
			out = append(out,
				fmt.Sprintf("%d operations take what the class of %s says: an estimate, ±%.0f %% "+
					"(%s)", len(roof), c.GPU.Name, 100*k.Uncertainty, k.Source))
		} else {
			out = append(out,
				fmt.Sprintf("%d operations take what the roofline of %s says, at %.0f %% of its "+
					"peak and %.0f %% of its memory's: an estimate, ±%.0f %%",
					len(roof), c.GPU.Name, 100*c.GPU.Efficiency, 100*c.GPU.MemoryEfficiency,
					100*gen.Uncertainty))
		}
	}
	if k := c.Class; k != nil && c.Precision != workload.BF16 && !k.Has(c.Precision) {
		instead := c.Precision.Wider()
		for instead != workload.BF16 && !k.Has(instead) {
			instead = instead.Wider()
		}
		out = append(out, fmt.Sprintf("%s has no rate of %s products: they take what those of %s do",
			c.GPU.Name, c.Precision, instead))
	}
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(c.Times)) {
		if !slices.ContainsFunc(j.Operations, func(o gen.Operation) bool { return o.Name == name }) {
			unused = append(unused, name)
		}
	}
	if unused != nil {
		out = append(out, fmt.Sprintf("the job has no operations %q of the file of times", unused))
	}
	return out
}

// write prints the tables.
func (r *generated) write(to io.Writer) error {
	fmt.Fprintf(to, "%d ranks, %d microbatches, %d parameters\n%s\n\n", r.Ranks, r.Microbatches, r.Params,
		r.Memory)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "group\tranks\tgroups\tcall\twhat\tbytes\tof\tcalls/rank\tbytes/rank\tsent/rank")
	for _, t := range r.Traffic {
		calls := fmt.Sprint(t.CallsMax)
		if t.CallsMin != t.CallsMax {
			calls = fmt.Sprintf("%d-%d", t.CallsMin, t.CallsMax)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%d\t%s\t%s\t%d\t%d\n", t.Kind, t.Ranks, t.Groups, t.Op, t.What,
			t.Bytes, t.Formula, calls, t.BytesPerRank, t.SentPerRank)
	}
	fmt.Fprintln(w, "\noperation\tGFLOP\tMB\tus\tfrom")
	for _, o := range r.Operations {
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%.3f\t%s\n", o.Name, float64(o.FLOPs)/1e9, float64(o.Bytes)/1e6, o.Us,
			o.Source)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range r.Notes {
		if _, err := fmt.Fprintf(to, "note: %s\n", n); err != nil {
			return err
		}
	}
	return nil
}
