package jobs

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/internal/terminal"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/advise"
	"github.com/simccl/simccl/tuning/tunerfile"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// AdviseOptions are the flags and arguments of advise.
type AdviseOptions struct {
	What     string // an operation, or the file of a job
	Machine  cli.Machine
	Sizes    string // exactly these; empty: from Min to Max
	Min, Max string // empty: 1K, 256M
	Factor   int64
	Type, Op string // of elements, of a reduction
	Launch   string // eager or graph
	Host     string // of a job: recorded, ideal, unprofiled, auto or a factor
	Faults   []string
	Try      []string // settings, NCCL_K=V
	Kernels  bool
	Serving  scenario.Serving // of ep_dispatch and ep_combine
	Within   time.Duration    // for which settings are tried; 0: all of them
	Write    string           // a file for NCCL's example tuner to be written
	Tuner    string           // such a file to be checked in place of advice
}

// Sizes without an option.
const (
	least  = "1K"
	most   = "256M"
	factor = 4
)

// most100 is the default of --max-time; a sweep of 16 nodes takes less on an idle machine.
const most100 = 100 * time.Second

// Advise returns `simccl advise`.
func Advise(a *cli.App) *cobra.Command {
	var o AdviseOptions
	c := &cobra.Command{Use: "advise OP|JOB",
		Short: "Say which NCCL settings make an operation or a job faster",
		Long: `advise simulates an operation, or a job that workload show reads (its host as
--host says), under settings that a user of NCCL may set: algorithm, protocol, channels,
threads, buffers and chunks, NVLS, PXN, cross-NIC, queue pairs, GPUDirect and
sockets. It prints those that gain 3 % or more, at which sizes, how uncertain the
gain is, and the line to write. --try adds settings of yours; NCCL_TOPO_FILE=FILE is
another topology. What gains is said on standard error as soon as it is simulated.

Of ep_dispatch and ep_combine it compares kernels, by how many SMs each, and says what
bounds them: links, SMs or fixed costs.

--write-tuner FILE writes the best algorithm, protocol and channels by size as rows
of NCCL's example tuner plugin and says what they gain. --tuner FILE checks such a
file in place of advice: rows that the plugin reads otherwise than they are
written, rows that never match, rows that lose; exit status 7 where there are any.

Sizes are ` + least + ` to ` + most + `, factor 4, unless options say otherwise.`,
		Example: `  simccl advise all_reduce --topo h200x4 --multicast off --sizes 4M
  simccl advise all_reduce --topo dgx-h100 --nodes 2 --sizes 1M --write-tuner tuner.csv
  simccl advise all_gather --topo dgx-h100 --nodes 2 --sizes 1M --network hybrid
  simccl advise all_reduce --topo dgx-h100 --nodes 2 --sizes 1M --tuner tuner.csv --json
  simccl advise ep_dispatch --topo dgx-h200 --nodes 4 --experts 256 --top-k 8 --hidden 7168 --tokens 128`,
		Args: cli.Exactly("OP|JOB"),
		RunE: cli.RunWithOne(a, &o, &o.What)}
	o.register(c)
	return c
}

func (o *AdviseOptions) register(c *cobra.Command) {
	o.Machine.Register(c)
	o.Machine.RegisterClass(c)
	o.Machine.RegisterNetwork(c)
	flags.Register(c.Flags(), flags.In(flags.Sizes,
		flags.Of(&o.Min, "min-bytes", "b", "", "smallest `SIZE` (default "+least+")", "workload.range.min"),
		flags.Of(&o.Max, "max-bytes", "e", "", "largest `SIZE` (default "+most+")", "workload.range.max"),
		flags.Of(&o.Factor, "step-factor", "f", factor, "`FACTOR` of one size to the next",
			"workload.range.factor"),
		flags.Of(&o.Sizes, "sizes", "", "", "exactly these `SIZES` instead: 96,240,1G", "workload.sizes")),
		flags.In("",
			flags.Of(&o.Type, "datatype", "d", "float", "element type"),
			flags.Of(&o.Op, "op", "o", "sum", "reduction: sum, prod, min, max or avg"),
			flags.Of(&o.Launch, "launch", "", "graph",
				"eager: one process a GPU, asynchronous launches; graph: device time alone", "engine.launch"),
			flags.Of(&o.Host, "host", "", "recorded", "of a job, the host's time: recorded, ideal (none), "+
				"unprofiled (estimated), auto (ideal, or unprofiled where the host is the limit) or a "+
				"factor"),
			flags.Of(&o.Faults, "fault", "", nil,
				"advise for a machine with a `FAULT`, as run has it; repeatable", "network.faults"),
			flags.Of(&o.Kernels, "kernels", "", false,
				"try symmetric windows and kernels of frameworks for serving too"),
			flags.Of(&o.Try, "try", "", nil,
				"try `NCCL_K=V` too, one variable, whose value may have commas; repeatable"),
			flags.Of(&o.Within, "max-time", "", most100,
				"try settings for so `LONG`, those that promise most first; 0: all of them"),
			flags.Of(&o.Write, "write-tuner", "", "",
				"write the choices by size to `FILE` for NCCL's example tuner"),
			flags.Of(&o.Tuner, "tuner", "", "", "check the `FILE` of NCCL's example tuner")),
		flags.In("Serving", cli.ExpertRows(&o.Serving)...))
}

// Run advises, or checks a file of NCCL's example tuner.
func (o *AdviseOptions) Run(ctx context.Context, a *cli.App) error {
	q, err := o.request(ctx, a)
	if err != nil {
		return err
	}
	if scenario.OfServing(q.Spec.Workload.Op) {
		l, err := advise.Experts(ctx, q)
		if err != nil {
			return a.AsFlags(err)
		}
		if a.JSON {
			return a.PrintJSON(l)
		}
		return a.PrintText(l.Text())
	}
	if o.Tuner != "" {
		return o.check(ctx, a, q)
	}
	return o.advise(ctx, a, q)
}

// request builds the Request: machine and workload from the options, with --try and --max-time.
func (o *AdviseOptions) request(ctx context.Context, a *cli.App) (advise.Request, error) {
	q := advise.Request{Options: a.Options(nil)}
	var err error
	if q.Spec, err = o.Machine.Spec(a); err != nil {
		return q, err
	}
	q.Spec = q.Spec.WithEnv(a.Env)
	if q.Spec.Workload, err = o.workload(a); err != nil {
		return q, err
	}
	if job := q.Spec.Workload.Job; job != "" {
		files := Files{Names: []string{job}}
		j, err := files.Read(a)
		if err != nil {
			return q, err
		}
		p, err := o.hosted(ctx, a, j, q.Spec)
		if err != nil {
			return q, err
		}
		q.Options = a.OptionsWith(job, []byte(p.Format()))
	}
	q.Spec.Network.Faults = o.Faults
	q.Spec.Engine = scenario.Engine{Launch: o.Launch, Jitter: "off"}
	if o.Launch == "eager" {
		q.Spec.Engine.Launch = ""
	}
	q.Kernels = o.Kernels
	for _, kv := range o.Try {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || !strings.HasPrefix(k, "NCCL_") {
			return q, fail.Usage("--try %s: write NCCL_NAME=value", kv)
		}
		q.Try = append(q.Try, advise.Try(k, v))
	}
	return q, a.AsFlags(q.Spec.Validate())
}

// workload returns the workload of the argument: a job if it names an existing file, else an operation.
func (o *AdviseOptions) workload(a *cli.App) (scenario.Workload, error) {
	if o.What == scenario.Dispatch || o.What == scenario.Combine {
		if o.Sizes != "" || o.Min != "" || o.Max != "" || o.Write != "" || o.Tuner != "" || len(o.Try) > 0 {
			return scenario.Workload{}, fail.Usage("%s has no sizes and no settings of NCCL; write --tokens "+
				"and leave --sizes, -b, -e, --try and those of a tuner out", o.What)
		}
		return scenario.Workload{Op: o.What, Serving: o.Serving}, nil
	}
	fn, err := coll.ParseFunc(o.What)
	if err != nil {
		if _, missing := os.Stat(a.Path(o.What)); missing != nil {
			return scenario.Workload{}, fail.Usage("%s is no file of a job, and %v", o.What, err)
		}
		if o.Write != "" || o.Tuner != "" {
			return scenario.Workload{},
				fail.Usage("--write-tuner and --tuner are for one operation; %s is a job", o.What)
		}
		return scenario.Workload{Job: o.What}, nil
	}
	w := scenario.Workload{Op: fn.TestName()}
	if o.Type != "float" {
		w.Types = []string{o.Type}
	}
	if o.Op != "sum" {
		w.Reductions = []string{o.Op}
	}
	if o.Sizes != "" {
		if o.Min != "" || o.Max != "" {
			return w, fail.Usage("--sizes replaces -b, -e and -f; leave one of them out")
		}
		w.Sizes = strings.Split(o.Sizes, ",")
		return w, nil
	}
	w.Range = scenario.Range{Min: least, Max: most, Factor: o.Factor}
	if o.Min != "" {
		w.Range.Min = o.Min
	}
	if o.Max != "" {
		w.Range.Max = o.Max
	}
	return w, nil
}

// advise prints the settings that gain.
func (o *AdviseOptions) advise(ctx context.Context, a *cli.App, q advise.Request) error {
	if o.Within < 0 {
		return fail.Usage("--max-time %s: write a time, for example 100s, or 0 for no bound", o.Within)
	}
	said := &said{App: a, within: o.Within, started: time.Now()}
	if q.Begin, q.Found = said.begin, said.found; o.Within > 0 {
		q.Within = func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, o.Within)
		}
	}
	r, err := advise.New(ctx, q)
	said.end()
	if err != nil {
		return a.AsFlags(err)
	}
	if a.JSON {
		err = a.PrintJSON(r.Advice)
	} else {
		err = a.PrintText(r.Text())
	}
	if err != nil || o.Write == "" {
		return err
	}
	return o.writeTuner(ctx, a, q, r)
}

// said writes progress to standard error while settings are tried.
type said struct {
	*cli.App
	within  time.Duration
	started time.Time
	begun   time.Time // to try settings
	last    time.Time // that something was said
	of      int
	done    int
	bar     *terminal.Progress
	held    []string // lines to print once it takes long
}

// sayFirst is the time after which progress is first printed.
const sayFirst = 2 * time.Second

// sayEvery is after how long without a word it is said how far the trials are.
const sayEvery = 10 * time.Second

func (s *said) begin(total int) (step func()) {
	bound := ""
	if s.within > 0 {
		bound = fmt.Sprintf(", for at most %s (--max-time)", s.within)
	}
	s.begun, s.last, s.of, s.bar = time.Now(), time.Now(), total, s.Progress("settings", total)
	s.say("as it is: simulated in %s; %d settings follow%s", time.Since(s.started).Round(time.Second), total,
		bound)
	return func() {
		s.bar.Step()
		if s.done++; time.Since(s.last) > sayEvery && !terminal.Is(s.Err) {
			s.say("%d of %d settings, %s left", s.done, s.of, s.left(s.done))
		}
	}
}

func (s *said) found(x advise.Found) {
	s.say("%s: %.2f us for %.2f at %d B, x %.3f (%d of %d settings, %s left)", x.Line, x.Is, x.Us, x.Bytes,
		x.Us/x.Is, x.Tried, x.Of, s.left(x.Tried))
}

func (s *said) say(format string, args ...any) {
	if s.held = append(s.held, fmt.Sprintf(format, args...)); time.Since(s.started) < sayFirst {
		return
	}
	s.bar.Clear()
	for _, line := range s.held {
		fmt.Fprintln(s.Err, "simccl: "+line)
	}
	s.held, s.last = nil, time.Now()
}

// left returns the estimated time for the remaining settings.
func (s *said) left(done int) string {
	spent := time.Since(s.begun)
	left := spent / time.Duration(max(1, done)) * time.Duration(s.of-done)
	if s.within > 0 {
		left = max(0, min(left, s.within-spent))
	}
	return "about " + left.Round(time.Second).String()
}

func (s *said) end() {
	if s.bar != nil {
		s.bar.End()
	}
}

// writeTuner writes a tuner file and prints the gain of its rows.
func (o *AdviseOptions) writeTuner(ctx context.Context, a *cli.App, q advise.Request,
	r *advise.Report) error {
	rows, err := r.Tuner()
	if err != nil {
		return err
	}
	data := tunerfile.Write(rows, r.About()...)
	if err := newfile.Write(a.Path(o.Write), data); err != nil {
		return fail.Input(err)
	}
	q.Options.Warn = nil
	c, err := advise.CheckTuner(ctx, q, o.Write, data)
	if err != nil {
		return a.AsFlags(err)
	}
	a.Wrote(o.Write, "NCCL_TUNER_PLUGIN=example NCCL_TUNER_CONFIG_FILE="+o.Write+" takes it")
	if a.JSON {
		return nil
	}
	return a.PrintText("\n" + c.Text())
}

// check prints the effect of a tuner file.
func (o *AdviseOptions) check(ctx context.Context, a *cli.App, q advise.Request) error {
	data, err := a.ReadAs(o.Tuner, process.MaxSettings, inputs.Tuner)
	if err != nil {
		return err
	}
	c, err := advise.CheckTuner(ctx, q, o.Tuner, data)
	if err != nil {
		return a.AsFlags(err)
	}
	if a.JSON {
		err = a.PrintJSON(c)
	} else {
		err = a.PrintText(c.Text())
	}
	if err == nil && len(c.Findings) > 0 {
		return fail.Printed("%s: %d findings", o.Tuner, len(c.Findings))
	}
	return err
}
