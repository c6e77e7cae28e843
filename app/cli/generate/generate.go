// Package generate holds the command workload gen: jobs from hyper-parameters.
//
// What it must not know: how programs are made and what they come to.
package generate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/app/cli"
	table "github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/gen"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// flags are the options that a Config does not hold as they are written.
type flags struct {
	c                                             gen.Config
	dtype, grads, schedule, bucket, cp, recompute string
	gpu, times, out                               string
	efficiency, memory                            float64
}

// Command is "workload gen".
func Command(a *cli.App) *cobra.Command {
	var f flags
	c := &cobra.Command{Use: "gen",
		Short: "Make a job from hyper-parameters: a transformer and how its training is divided",
		Long: `gen makes the training of a transformer: tensor parallel with --sp (sequence
parallel), pipelines by --schedule, data parallel in buckets, ZeRO by --fsdp, experts
and context parallel. It writes simccl's text and prints what each group moves, to be
checked by hand (docs/WORKLOADS.md has the formulas). Compute is by the roofline of
--gpu, an estimate, or from a file of times.
Ranks: tp x cp x dp x pp. Microbatches: global-batch / (micro-batch x dp).`,
		Example: `  simccl workload gen --layers 8 --hidden 1024 --heads 8 --tp 2 --sp --pp 2 --dp 2 --global-batch 16 -o job.txt
  simccl workload gen --layers 4 --hidden 1024 --heads 8 --dp 8 --fsdp 3 --global-batch 8 -o job.txt
  simccl workload gen --layers 4 --hidden 1024 --heads 8 --dp 4 --ep 4 --experts 8 --top-k 2 --global-batch 4 -o job.txt`,
		Args: cli.Exactly(),
		RunE: func(*cobra.Command, []string) error { return run(a, &f) }}
	f.model(c)
	f.division(c)
	f.cost(c)
	return c
}

// model declares the options of the model.
func (f *flags) model(c *cobra.Command) {
	x := c.Flags()
	x.Int64Var(&f.c.Layers, "layers", 32, "number of layers")
	x.Int64Var(&f.c.Hidden, "hidden", 4096, "hidden size")
	x.Int64Var(&f.c.Heads, "heads", 32, "heads of attention")
	x.Int64Var(&f.c.KVHeads, "kv-heads", 0, "heads of keys and values (default: as --heads)")
	x.Int64Var(&f.c.FFN, "ffn", 0, "size of the feed-forward network, or of an expert (default: 4 x hidden)")
	x.BoolVar(&f.c.Gated, "gated", false, "the feed-forward network has three matrices (SwiGLU)")
	x.BoolVar(&f.c.Tied, "tied", false, "the head multiplies by the embedding's matrix")
	x.Int64Var(&f.c.Vocab, "vocab", 32000, "size of the vocabulary; it divides by --tp")
	x.Int64Var(&f.c.Seq, "seq", 4096, "tokens of a sequence")
	x.Int64Var(&f.c.MicroBatch, "micro-batch", 1, "sequences of a microbatch")
	x.Int64Var(&f.c.GlobalBatch, "global-batch", 0, "sequences of an iteration (default: one microbatch a "+
		"data parallel rank, as many as stages with --pp)")
	x.StringVar(&f.dtype, "dtype", "bfloat16", "`TYPE` of parameters and activations")
	x.StringVar(&f.grads, "grad-dtype", "", "`TYPE` in which gradients are reduced (default: as --dtype)")
	x.IntVar(&f.c.Experts, "experts", 0, "experts of each layer; 0: a feed-forward network")
	x.IntVar(&f.c.TopK, "top-k", 1, "experts that a token goes to")
	x.Float64Var(&f.c.Capacity, "capacity", 1,
		"what ranks exchange for experts, as a multiple of an even division")
	table.Title(x, "Neural network")
}

// division declares how training is divided.
func (f *flags) division(c *cobra.Command) {
	x := c.Flags()
	x.IntVar(&f.c.TP, "tp", 1, "tensor parallel ranks")
	x.BoolVar(&f.c.SequenceParallel, "sp", false, "sequence parallel among tensor parallel ranks")
	x.IntVar(&f.c.PP, "pp", 1, "pipeline stages")
	x.StringVar(&f.schedule, "schedule", "1f1b", "`ORDER` of microbatches: "+strings.Join(gen.Schedules(),
		", "))
	x.IntVar(&f.c.Virtual, "virtual", 0, "stages of a rank with --schedule interleaved (default 2)")
	x.IntVar(&f.c.DP, "dp", 1, "data parallel ranks")
	x.StringVar(&f.bucket, "bucket", "25MB", "`SIZE` of a bucket of gradients")
	x.BoolVar(&f.c.NoOverlap, "no-overlap", false, "reduce gradients after the backward pass, not beside it")
	x.IntVar(&f.c.FSDP, "fsdp", 0, "stage of ZeRO: 1 (optimizer), 2 (and gradients), 3 (and parameters)")
	x.IntVar(&f.c.Prefetch, "prefetch", 1, "layers whose parameters are gathered ahead")
	x.IntVar(&f.c.EP, "ep", 1, "expert parallel ranks, within data parallel ones")
	x.IntVar(&f.c.CP, "cp", 1, "context parallel ranks")
	x.StringVar(&f.cp, "cp-mode", "ring", "`HOW` keys and values come: ring or all-gather")
	x.StringVar(&f.recompute, "recompute", "none", "`WHAT` of a layer's forward pass is done again in its "+
		"backward pass: none, selective (attention) or full")
	x.Lookup("recompute").NoOptDefVal = "full"
	x.IntVar(&f.c.Iterations, "iterations", 1, "iterations")
	table.Title(x, "Division over ranks")
}

// cost declares what computations take.
func (f *flags) cost(c *cobra.Command) {
	x := c.Flags()
	x.StringVar(&f.gpu, "gpu", "h100", "roofline of this `GPU`: "+strings.Join(gen.GPUs(), ", "))
	x.Float64Var(&f.efficiency, "efficiency", gen.DefaultEfficiency, "what matrix products reach of the peak")
	x.Float64Var(&f.memory, "memory-efficiency", gen.DefaultMemoryEfficiency,
		"what memory reaches of its peak")
	x.StringVar(&f.times, "times", "",
		"times of operations instead of the roofline: a `FILE`, CSV (op,us) or JSON ({\"op\": us})")
	x.StringVarP(&f.out, "out", "o", "", "write to `FILE` instead of standard output")
	table.Title(x, "Time and output")
}

// config is what the options say.
func (f *flags) config(a *cli.App) (gen.Config, error) {
	c := f.c
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.FFN == 0 {
		c.FFN = 4 * c.Hidden
	}
	var ok bool
	if c.Schedule, ok = gen.ParseSchedule(f.schedule); !ok {
		return c, fail.Usage("--schedule %s: write one of %s", f.schedule, strings.Join(gen.Schedules(),
			", "))
	}
	if c.Virtual == 0 {
		c.Virtual = 1
		if c.Schedule == gen.Interleaved {
			c.Virtual = 2
		}
	}
	if c.GlobalBatch == 0 {
		c.GlobalBatch = c.MicroBatch * int64(max(c.DP, 1)) * int64(max(c.PP, 1))
	}
	switch f.cp {
	case "ring":
		c.Ring = true
	case "all-gather":
	default:
		return c, fail.Usage("--cp-mode %s: write ring or all-gather", f.cp)
	}
	switch f.recompute {
	case "none":
	case "selective":
		c.Selective = true
	case "full":
		c.Recompute = true
	default:
		return c, fail.Usage("--recompute %s: write none, selective or full (--recompute=selective)",
			f.recompute)
	}
	var err error
	if c.Bucket, err = units.ParseBytes(f.bucket); err != nil {
		return c, fail.Usage("--bucket: %v", err)
	}
	if c.Type, err = coll.ParseDataType(f.dtype); err != nil {
		return c, fail.Usage("--dtype: %v", err)
	}
	c.GradType = c.Type
	if f.grads != "" {
		if c.GradType, err = coll.ParseDataType(f.grads); err != nil {
			return c, fail.Usage("--grad-dtype: %v", err)
		}
	}
	if c.GPU, ok = gen.Peak(f.gpu, c.Type); !ok {
		return c, fail.Usage("--gpu %s: write one of %s, or give --times", f.gpu,
			strings.Join(gen.GPUs(), ", "))
	}
	c.GPU.Efficiency, c.GPU.MemoryEfficiency = f.efficiency, f.memory
	if f.times != "" {
		data, err := a.ReadAs(f.times, process.MaxSettings, inputs.OperationTimes)
		if err != nil {
			return c, err
		}
		if c.Times, err = readTimes(data, f.times); err != nil {
			return c, fail.Input(err)
		}
	}
	return c, nil
}

// result is what --json prints.
type result struct {
	Ranks        int             `json:"ranks"`
	Microbatches int             `json:"microbatches"`
	Params       int64           `json:"params"`
	Traffic      []gen.Traffic   `json:"traffic"`
	Operations   []gen.Operation `json:"operations"`
	// Memory is an estimate of what the fullest GPU holds.
	Memory *workload.MemoryUse `json:"memoryBytesPerGpu"`
	Notes  []string            `json:"notes"`
	Text   string              `json:"text,omitempty"` // where it went to standard output
	Files  []string            `json:"files"`
}

func run(a *cli.App, f *flags) error {
	c, err := f.config(a)
	if err != nil {
		return err
	}
	j, err := gen.Make(c)
	if err != nil {
		return fail.Argument(err)
	}
	r := result{Ranks: j.Folded.Ranks(), Microbatches: j.Microbatches, Params: j.Params, Traffic: j.Traffic,
		Operations: j.Operations, Memory: j.Folded.Memory.Use(c.GPU.Capacity), Notes: notes(&c, j),
		Files: []string{}}
	if p := r.Memory.Problem(c.GPU.Name); p != "" {
		r.Notes = append([]string{p}, r.Notes...)
	}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	if r.Traffic == nil {
		r.Traffic = []gen.Traffic{}
	}
	text := j.Folded.Format()
	summary := a.Out
	switch {
	case f.out != "" && f.out != "-":
		w, err := newfile.Create(a.Path(f.out))
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, text)
		if err := w.Finish(err); err != nil {
			return err
		}
		r.Files = append(r.Files, f.out)
	case a.JSON:
		r.Text = text
	default:
		if err := a.PrintText(text); err != nil {
			return err
		}
		summary = a.Err
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	return r.write(summary)
}

// notes say what is estimated.
func notes(c *gen.Config, j *gen.Job) (out []string) {
	roof := j.FromRoofline
	if len(c.Times) == 0 {
		roof = nil
		for _, o := range j.Operations {
			roof = append(roof, o.Name)
		}
	}
	if len(roof) > 0 {
		out = append(out, fmt.Sprintf("%d operations take what the roofline of %s says, at %.0f %% of its "+
			"peak and %.0f %% of its memory's: an estimate, ±%.0f %%",
			len(roof), c.GPU.Name, 100*c.GPU.Efficiency, 100*c.GPU.MemoryEfficiency, 100*gen.Uncertainty))
	}
	var unused []string
	for _, name := range slices.Sorted(maps.Keys(c.Times)) {
		if !used(j, name) {
			unused = append(unused, name)
		}
	}
	if unused != nil {
		out = append(out, fmt.Sprintf("the job has no operations %q of the file of times", unused))
	}
	return out
}

func used(j *gen.Job, name string) bool {
	for _, o := range j.Operations {
		if o.Name == name {
			return true
		}
	}
	return false
}

// write prints the tables.
func (r *result) write(to io.Writer) error {
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
