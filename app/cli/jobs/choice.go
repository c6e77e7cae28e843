package jobs

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/shellwords"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/study/diff"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/transform"
	"github.com/spf13/cobra"
)

// Choice are the flags that select what runs on which machine; --vs accepts them too.
type Choice struct {
	Machine  cli.Machine
	Fidelity string
	Host     string
	Scale    string   // dp=N
	Slow     []string // RANK=FACTOR
	Variants []string // K=V
	Place    string
	GPU      string
	Ideal    []string // groups
	observe  bool     // a trace shows the network
}

func (f *Choice) register(c *cobra.Command) {
	f.Machine.Register(c)
	f.Machine.RegisterClass(c)
	f.Machine.RegisterNetwork(c)
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&f.Fidelity, "fidelity", "", "share", "share (calls simulated once, sharing links and "+
			"GPUs), step (all plans in one engine) or alpha (NCCL's formula)"),
		flags.Of(&f.Host, "host", "", "", "the host's time: recorded, ideal (none), unprofiled "+
			"(estimated), auto (ideal, or unprofiled where the host is the limit) or a factor (default "+
			"recorded; of a profiler's recording on another machine or GPU auto)"),
		flags.Of(&f.Scale, "scale", "", "", "`dp=N`: data parallel groups of N ranks"),
		flags.Of(&f.Slow, "straggler", "", nil,
			"`RANK=FACTOR`: compute of a rank takes that much longer; repeatable"),
		flags.Of(&f.Variants, "variant", "", nil,
			"`K=V`: bucket=25MB, no-sync, schedule=gpipe|1f1b, microbatches=4 or skew=40,30,20,10; "+
				"repeatable"),
		flags.Of(&f.Place, "place", "", "", "`PLACES` of the ranks on the machine, 3,2,1,0, or kinds of "+
			"groups, tp,dp: ranks of a TP group are neighbours"),
		flags.Of(&f.GPU, "gpu", "", "", "compute as on this `GPU`, an estimate by the ratio of "+
			"rooflines; A100:H100 where the job does not name its own"),
		flags.Of(&f.Ideal, "ideal", "", nil,
			"what is won if calls of the `GROUP` took no time: its name, a kind (dp), or all; repeatable")))
}

// options converts the flags to options of a replay.
func (f *Choice) options() (o replay.Options, err error) {
	o.Observe = f.observe
	if o.Fidelity, err = job.ParseFidelity(f.Fidelity); err != nil {
		return o, fail.Usage("--fidelity: %v", err)
	}
	if f.Machine.Network != "flow" && o.Fidelity == job.Alpha {
		return o, fail.Usage("--network %s: a formula simulates no packets; write --fidelity share or step",
			f.Machine.Network)
	}
	switch f.Host {
	case hostRecorded:
		o.Host = 1
	case "", "ideal", hostUnprofiled, hostAuto:
	default:
		if o.Host, err = strconv.ParseFloat(f.Host, 64); err != nil || !(o.Host >= 0 && o.Host <= 1000) {
			return o,
				fail.Usage("--host %s: write recorded, ideal, unprofiled, auto or a factor from 0 to 1000",
					f.Host)
		}
	}
	if f.Scale != "" {
		n, ok := strings.CutPrefix(f.Scale, "dp=")
		if o.Replicas, err = strconv.Atoi(n); !ok || err != nil || o.Replicas < 1 {
			return o, fail.Usage("--scale %s: write dp=N; other groups are part of the recorded work, "+
				"workload gen makes jobs of other sizes", f.Scale)
		}
	}
	for _, s := range f.Slow {
		rank, factor, ok := strings.Cut(s, "=")
		r, err1 := strconv.Atoi(rank)
		x, err2 := strconv.ParseFloat(factor, 64)
		if !ok || err1 != nil || err2 != nil {
			return o, fail.Usage("--straggler %s: write RANK=FACTOR, 3=1.2", s)
		}
		if o.Slow == nil {
			o.Slow = map[int]float64{}
		}
		o.Slow[r] = x
	}
	return o, nil
}

// unprofiled sets the host's factors without profiler, if the flags ask for it.
func (f *Choice) unprofiled(j *load.Job, o *replay.Options) error {
	if f.Host != hostUnprofiled {
		return nil
	}
	if o.Hosts, _ = replay.Unprofiled(j); o.Hosts == nil {
		return fail.Usage("--host unprofiled: the job is no recording of a profiler; write recorded, ideal " +
			"or a factor")
	}
	return nil
}

// vary applies the changes of --variant. The recorded iteration times are dropped, as they do not apply to
// the variant.
func (f *Choice) vary(j *load.Job) (*load.Job, error) {
	spec, err := transform.ParseVariant(f.Variants)
	if err != nil || !spec.Any() {
		return j, fail.Argument(err)
	}
	p, notes, err := transform.ApplyVariant(j.Program, spec)
	if err != nil {
		return nil, fail.Input(err)
	}
	q := *j
	q.Program, q.Notes = p, append(slices.Clone(j.Notes), notes...)
	if j.Rebuilt != nil {
		r := *j.Rebuilt
		r.Steps, q.Rebuilt = nil, &r
	}
	return &q, nil
}

// gpus returns the GPU on which the job's times hold, and the one to convert them to.
func (f *Choice) gpus(j *load.Job) (from, to string) {
	from, to, ok := strings.Cut(f.GPU, ":")
	if !ok {
		from, to = j.Meta.GPU, f.GPU
	}
	return from, to
}

// all runs the job, and with the options of --vs. Where nothing asks for a host they all have one of a
// kind, so that they compare.
func (o *ReplayOptions) all(ctx context.Context, a *cli.App, j *load.Job) (first *outcome,
	list []replay.Versus,
	err error) {
	r, err := o.prepare(a, j)
	if err != nil {
		return nil, nil, err
	}
	auto := r.elsewhere
	var others []*ready
	var words [][]string
	for _, text := range o.Versus {
		own, err := shellwords.Split(text)
		if err != nil {
			return nil, nil, fail.Argument(fmt.Errorf("--vs: %w", err))
		}
		x, err := o.other(ctx, a, j, own)
		if err != nil {
			return nil, nil, fmt.Errorf("--vs %s: %w", text, err)
		}
		auto = auto || x.elsewhere && x.host == ""
		others, words = append(others, x), append(words, own)
	}
	r.settle(auto)
	if first, err = r.run(ctx); err != nil {
		return nil, nil, err
	}
	for i, x := range others {
		x.settle(auto)
		out, err := x.run(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("--vs %s: %w", o.Versus[i], err)
		}
		list = append(list, first.report.Versus(strings.Join(words[i], " "), out.report))
	}
	return first, list, nil
}

// other prepares the job with the options of --vs applied on top of the given ones.
func (o *ReplayOptions) other(ctx context.Context, a *cli.App, j *load.Job, own []string) (r *ready,
	err error) {
	var x Choice
	var env []string
	sub := *a
	var quiet bytes.Buffer
	sub.Err, sub.Env = &quiet, slices.Clone(a.Env)
	c := cli.Nested("replay", cobra.ArbitraryArgs, func(c *cobra.Command, bare []string) error {
		for _, w := range bare {
			option := diff.Option(w)
			if option == "" && builtin.Lookup(w) != nil {
				option = "topo"
			}
			if c.Flags().Lookup(option) == nil {
				return fail.Usage("unexpected %q: write options as replay has them, or NCCL_K=V, FILE.xml, "+
					"a name of topo list, FILE.json, or a version of NCCL", w)
			}
			if err := c.Flags().Set(option, w); err != nil {
				return fail.Argument(err)
			}
		}
		sub.Env = append(sub.Env, env...)
		r, err = x.prepare(&sub, j)
		return err
	})
	x.register(c)
	c.Flags().StringArrayVar(&env, "env", nil, "")
	c.SetArgs(append(append([]string{}, o.Shared...), own...)) // nil would mean the arguments of the process
	return r, c.ExecuteContext(ctx)
}
