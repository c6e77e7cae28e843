package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/intercept"
	"github.com/simccl/simccl/intercept/collector"
	"github.com/simccl/simccl/intercept/shim"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/workload/calls"
	"github.com/simccl/simccl/workload/load"
	"github.com/spf13/cobra"
)

// InterceptOptions are the flags and arguments of intercept.
type InterceptOptions struct {
	Command  []string // with its arguments
	Machine  cli.Machine
	Devices  string // real, virtual or none; empty: as this machine has them
	Time     string // record, virtual, measured or paced; empty: by the devices
	Record   string // files to be written: the record, the lines of a log, the job, the timeline
	Log      string
	Workload string
	Trace    string
	Data     bool // data are moved and reduced
	Audit    bool
	Timeout  time.Duration
	Progress time.Duration // between two lines; 0: none
	Real     int           // ranks of a communicator that are processes; 0: all
	Grid     []int         // sizes of the job's groups, with Real
	Factor   float64       // of the host's time, where it is measured
	Speed    float64       // 1 / Factor; one of the two is 1
	NoRun    bool          // the job is not simulated
}

// Intercept returns `simccl intercept`.
func Intercept(a *cli.App) *cobra.Command {
	var o InterceptOptions
	c := &cobra.Command{Use: "intercept [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a program that uses NCCL on a cluster that is not there",
		Long: `intercept runs an unmodified program with a libnccl.so.2 whose communicators are
those of the virtual cluster of --topo and --nodes. It needs no GPU (--devices
virtual: the program loads a substitute for libcudart.so, too), records what every
rank calls, and simulates the job when the program has ended.

--time virtual (default without GPUs): clocks move by NCCL's calls and by what
they wait for, the same in each run. measured: by the processor time of threads as
well. paced: the program waits as long as the cluster would take. record (default
with GPUs): calls return at once. --data moves and reduces the data, so that
programs that read results get right ones.`,
		Example: "  simccl intercept -- true\n" +
			"  simccl intercept --nodes 4 --devices virtual --time virtual --data --record calls.jsonl -- " +
			"true",
		Args: someProgram,
		RunE: cli.RunWith(a, &o, &o.Command)}
	o.register(c)
	return c
}

func (o *InterceptOptions) register(c *cobra.Command) {
	o.Machine.Register(c)
	o.Machine.RegisterClass(c)
	o.Machine.RegisterNetwork(c)
	c.Flags().SetInterspersed(false)
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&o.Devices, "devices", "", "", "real (GPUs of this machine), virtual (none are needed), "+
			"none (the program uses no CUDA); default: real where there are GPUs"),
		flags.Of(&o.Time, "time", "", "",
			"record, virtual, measured or paced; default: record on real devices, else virtual"),
		flags.Of(&o.Record, "record", "", "",
			"write each rank's calls to `FILE` (.jsonl), which replay reads"),
		flags.Of(&o.Log, "log", "", "",
			"write the calls to `FILE` as lines of NCCL's log (NCCL_DEBUG_SUBSYS=COLL)"),
		flags.Of(&o.Workload, "workload", "", "", "write the job to `FILE` in simccl's own text"),
		flags.Of(&o.Trace, "trace", "", "",
			"write the simulated timeline to `FILE` (.json, .json.gz, .pftrace)", "outputs.trace"),
		flags.Of(&o.Data, "data", "", false, "move and reduce data; without it buffers are never touched"),
		flags.Of(&o.Audit, "audit", "", false,
			"redirect libraries that the program opens by their path, too (LD_AUDIT; vLLM)"),
		flags.Of(&o.Timeout, "timeout", "", intercept.DefaultLimit,
			"how `LONG` ranks that wait may be silent until they are reported and ended"),
		flags.Of(&o.Progress, "progress", "", 30*time.Second,
			"say every `LONG` how many calls there were so far, 0 for never"),
		flags.Of(&o.Real, "fake-ranks", "", 0, "only `N` ranks of each larger communicator are processes; "+
			"every other rank does what the nearest one below does"),
		flags.Of(&o.Grid, "fake-grid", "", nil, "with --fake-ranks, of what `SIZES` the job's groups are, "+
			"those of neighbors first (8,4); the processes are a smaller grid"),
		flags.Of(&o.Factor, "host-factor", "", 1,
			"under --time measured, the host of the cluster takes `FACTOR` times as long as this one"),
		flags.Of(&o.Speed, "host-speed", "", 1, "under --time measured, the host of the cluster is `SPEED` "+
			"times as fast as this one: 1/SPEED of --host-factor"),
		flags.Of(&o.NoRun, "no-simulation", "", false,
			"only record: the job is not simulated at the end")))
}

func someProgram(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fail.Usage("%s: COMMAND missing; write it after --: simccl intercept -- ./program",
			cmd.CommandPath())
	}
	return nil
}

// wordIndex returns the index of a word in a list, or a usage error that lists the words.
func wordIndex(flag, s string, words []string) (int, error) {
	i := slices.Index(words, s)
	if i < 0 {
		return 0, fail.Usage("%s %s: write one of %s", flag, s, strings.Join(words, ", "))
	}
	return i, nil
}

// maxSizes and maxRanks bound --fake-grid.
const (
	maxSizes = 8
	maxRanks = 1 << 20
)

// isGrid reports whether --fake-grid is a grid of more ranks than --fake-ranks.
func (o *InterceptOptions) isGrid() bool {
	n := 1
	for _, d := range o.Grid {
		if d < 2 || d > maxRanks/n {
			return false
		}
		n *= d
	}
	return o.Real > 0 && o.Real < n && len(o.Grid) <= maxSizes
}

// modes sets the modes of --devices and --time.
func (o *InterceptOptions) modes(how *intercept.Options) error {
	how.Devices = collector.Pretend
	if o.Devices != "" {
		i, err := wordIndex("--devices", o.Devices, collector.DeviceWords[:])
		if err != nil {
			return err
		}
		how.Devices = collector.Devices(i)
	} else if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		how.Devices = collector.Real
	}
	how.Clock = collector.Virtual
	if how.Devices == collector.Real {
		how.Clock = collector.Record
		if o.Data {
			how.Clock = collector.Measured
		}
	}
	if o.Time != "" {
		i, err := wordIndex("--time", o.Time, collector.Clocks[:])
		if err != nil {
			return err
		}
		how.Clock = collector.Clock(i)
	}
	how.Data, how.Audit, how.Limit, how.Factor = o.Data, o.Audit, o.Timeout, o.Factor/o.Speed
	how.Real, how.Grid = o.Real, o.Grid
	switch {
	case how.Devices == collector.Real && how.Clock == collector.Paced:
		return fail.NotYet("real streams that wait as long as the cluster takes",
			"--devices real --time paced: write record, virtual or measured")
	case how.Data && how.Clock == collector.Record:
		return fail.Usage("--data: calls return before they are matched under --time record; write --time " +
			"virtual or measured")
	case o.Real < 0 || o.Real > 0 && o.Data:
		return fail.Usage("--fake-ranks %d: write at least 1, without --data: ranks that no process is "+
			"have no data", o.Real)
	case o.Grid != nil && !o.isGrid():
		return fail.Usage("--fake-grid %s: write up to %d sizes of at least 2, of which processes are less "+
			"than all, with --fake-ranks: --fake-ranks 4 --fake-grid 8,4", strings.Trim(fmt.Sprint(o.Grid),
			"[]"), maxSizes)
	case !(o.Factor > 0 && o.Factor <= 1000):
		return fail.Usage("--host-factor %g: write a factor above 0, at most 1000", o.Factor)
	case !(o.Speed >= 0.001 && o.Speed <= 1000):
		return fail.Usage("--host-speed %g: write how many times as fast the host is, from 0.001 to 1000",
			o.Speed)
	case o.Speed != 1 && o.Factor != 1:
		return fail.Usage("--host-speed %g: --host-factor %g says the same of the host; write one of them",
			o.Speed, o.Factor)
	case o.Progress < 0:
		return fail.Usage("--progress %v: write how often, as 10s, or 0 for never", o.Progress)
	case o.Timeout < time.Second:
		return fail.Usage("--timeout %v: write at least 1s", o.Timeout)
	}
	return nil
}

// interceptMachine is the simulated cluster.
type interceptMachine struct {
	spec scenario.Spec
	site *scenario.Site
	*job.Machine
}

// machine loads it, and sets what the collector has to know of it.
func (o *InterceptOptions) machine(a *cli.App, how *intercept.Options) (m interceptMachine, err error) {
	if m.spec, err = o.Machine.Spec(a); err != nil {
		return m, err
	}
	m.spec.Outputs.Trace = o.Trace
	if m.site, err = scenario.Load(&m.spec, a.Options(nil)); err != nil {
		return m, a.AsFlags(err)
	}
	if m.Machine, err = m.site.Session(&m.spec); err != nil {
		return m, a.AsFlags(err)
	}
	how.GPUs, how.Memory = m.Cluster.NRanks(), 80<<30
	for _, s := range m.Cluster.Host(0).Systems {
		for _, id := range s.Of(topo.GPU) {
			how.SM = max(how.SM, s.Nodes[id].GPU.SM)
		}
	}
	if how.Clock != collector.Record {
		how.Prices = m.Prices()
	}
	return m, nil
}

// Run runs the program, and simulates the job that it was.
func (o *InterceptOptions) Run(ctx context.Context, a *cli.App) error {
	how := intercept.Options{Command: o.Command, Dir: a.Dir, Env: a.Environ, Stdin: os.Stdin, Stdout: a.Out,
		Stderr: a.Err}
	if err := o.modes(&how); err != nil {
		return err
	}
	m, err := o.machine(a, &how)
	if err != nil {
		return err
	}
	how.Every, how.Reports = o.Progress, func(p intercept.Progress) {
		fmt.Fprintf(a.Notes(), "simccl: %v: %d processes", p.Since.Round(time.Second), p.Procs)
		if how.Clock != collector.Record {
			fmt.Fprintf(a.Notes(), ", %d calls of NCCL, %.3f us on the clock of the program", p.Calls,
				float64(p.Elapsed/1000)/1000)
		}
		fmt.Fprintln(a.Notes())
	}
	how.Warn = func(text string) { fmt.Fprintf(a.Notes(), "simccl: %s\n", text) }
	if a.JSON { // the program's output is not part of the document
		how.Stdout = a.Err
	}
	if exe, err := os.Executable(); err == nil {
		how.Beside = filepath.Dir(exe)
	}
	if how.Cache, err = os.UserCacheDir(); err != nil {
		how.Cache = os.TempDir()
	}
	how.CC, _ = a.Getenv("CC")
	res, err := intercept.Run(ctx, how)
	if err != nil {
		return interceptFailure(err)
	}
	r := interceptReport{Calls: res.Calls, Processes: res.Procs, Exit: res.Exit, Faults: res.Faults,
		Clock: how.Clock.String(), Devices: how.Devices.String(), ElapsedUs: float64(res.Elapsed/1000) / 1000}
	if err := o.write(a, res.Record); err != nil {
		return err
	}
	if err := o.simulate(ctx, a, &r, res, &m); err != nil {
		return err
	}
	if err := r.print(a); err != nil {
		return err
	}
	return interceptVerdict(res, how.Data)
}

// interceptFailure sets the kind of an error, which determines the exit status.
func interceptFailure(err error) error {
	var refused *intercept.RefusedError
	var record *intercept.RecordError
	var built *shim.Error
	switch {
	case errors.As(err, &refused), errors.As(err, &record):
		return fail.Input(err)
	case errors.As(err, &built):
		return fail.Unavailable(err)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission), errors.Is(err, exec.ErrNotFound):
		return fail.Argument(err)
	}
	return err
}

// interceptVerdict returns the error of the command's result, which determines the exit status. Without data
// a program may fail because it uses what it did not receive: PyTorch's DDP compares the shapes of gathered
// parameters.
func interceptVerdict(res *intercept.Result, data bool) error {
	switch {
	case res.Exit != 0 && res.Calls > 0 && !data:
		return fail.Check("the program ended with exit status %d; without --data its ranks receive nothing: "+
			"if it acts on what it receives, write --time measured --data", res.Exit)
	case res.Exit != 0:
		return fail.Check("the program ended with exit status %d", res.Exit)
	case res.Faults > 0:
		return fail.Check("faults of the program that NCCL would hang in or not notice: %d", res.Faults)
	}
	return nil
}

// write writes the record in the forms that are asked for.
func (o *InterceptOptions) write(a *cli.App, r *calls.Record) error {
	for _, out := range []struct {
		name, what string
		write      func(io.Writer) error
	}{
		{o.Record, "record, ", r.Write},
		{o.Log, "log, ", r.WriteLog},
		{o.Workload, "workload, ", func(w io.Writer) error {
			_, err := io.WriteString(w, r.Program().Format())
			return err
		}},
	} {
		if out.name == "" {
			continue
		}
		var text bytes.Buffer
		if err := out.write(&text); err != nil {
			return err
		}
		if err := newfile.Write(a.Path(out.name), text.Bytes()); err != nil {
			return fail.Input(err)
		}
		a.WroteOf(out.name, out.what, "simccl replay "+out.name)
	}
	return nil
}

// simulate runs the record as a job of its own.
func (o *InterceptOptions) simulate(ctx context.Context, a *cli.App, r *interceptReport,
	res *intercept.Result, m *interceptMachine) error {
	if res.Calls == 0 || o.NoRun {
		return nil
	}
	p, timed := res.Record.Timed()
	how := replay.Options{Host: 1}
	rep, out, err := replay.Run(ctx, &load.Job{Program: p}, p, m.Machine, how)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil: // what was called cannot be carried out, or not be simulated
		r.Note = err.Error()
		return nil
	}
	r.Job = rep
	r.Timed = replay.Between(out, timed)
	if r.Clock == collector.Measured.String() {
		if r.Host, err = replay.Hosts(ctx, p, m.Machine, out, timed, how.Fidelity); err != nil {
			return err
		}
	}
	if o.Trace == "" {
		return nil
	}
	if err := m.site.TraceJob(&m.spec, a.Options(nil), out); err != nil {
		return a.AsFlags(err)
	}
	a.WroteOf(o.Trace, "trace, ", "open it in https://ui.perfetto.dev")
	return nil
}

// interceptReport is the JSON output.
type interceptReport struct {
	Calls     int            `json:"calls"`
	Processes int            `json:"processes"`
	Exit      int            `json:"exit"`
	Faults    int            `json:"faults"`
	Devices   string         `json:"devices"`
	Clock     string         `json:"time"`
	ElapsedUs float64        `json:"elapsedUs"` // the latest clock of any process
	Note      string         `json:"note,omitempty"`
	Job       *replay.Report `json:"job"` // null where nothing was called
	// Timed are, by rank, the times of the job between events that the program has timed
	// by cudaEventElapsedTime, each after the one before.
	Timed [][]float64 `json:"timedUs,omitempty"`
	// Host is the share of the host in these times, if they are measured.
	Host *replay.Hosting `json:"host,omitempty"`
}

func (r *interceptReport) print(a *cli.App) error {
	if a.JSON {
		return a.PrintJSON(r)
	}
	fmt.Fprintf(a.Notes(), "simccl: %d calls of NCCL, --devices %s --time %s", r.Calls, r.Devices, r.Clock)
	if r.Processes == 0 {
		fmt.Fprint(a.Notes(), ": the program has not called it, or found another libnccl.so.2 (see --audit)")
	} else if r.ElapsedUs > 0 {
		fmt.Fprintf(a.Notes(), ", %.3f us on the clock of the program", r.ElapsedUs)
	}
	fmt.Fprintln(a.Notes())
	if r.Note != "" {
		fmt.Fprintf(a.Notes(), "simccl: the calls are not simulated: %s\n", r.Note)
	}
	if r.Job == nil {
		return nil
	}
	if err := r.Job.WriteText(a.Out, true); err != nil || r.Timed == nil {
		return err
	}
	return r.steps(a.Out)
}

// steps writes the times between the events that the program itself recorded in the job.
func (r *interceptReport) steps(w io.Writer) error {
	median, _, n := replay.Slowest(r.Timed)
	_, err := fmt.Fprintf(w, "\nbetween events that the program has timed: median %.3f ms, of %d (the "+
		"slowest rank; compute and communication share the GPU)\n", median/1000, n)
	if err == nil && r.Host != nil {
		_, err = fmt.Fprintln(w, r.Host)
	}
	return err
}
