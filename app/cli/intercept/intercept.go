// Package intercept holds the command intercept: programs on clusters that are not
// there.
//
// What it must not know: how programs are intercepted, how jobs are simulated.
package intercept

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
	table "github.com/simccl/simccl/app/cli/flags"
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

// flags are the options of intercept.
type flags struct {
	machine  cli.Machine
	devices  string
	clock    string
	record   string
	log      string
	workload string
	trace    string
	data     bool
	audit    bool
	timeout  time.Duration
	noRun    bool
	factor   float64
	speed    float64
	hosted   bool // the hosts' time is measured
	real     int
	grid     []int
	progress time.Duration
}

// Command is "intercept".
func Command(a *cli.App) *cobra.Command {
	var f flags
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
		Args: some,
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd, a, &f, args) }}
	f.machine.Register(c)
	f.machine.RegisterClass(c)
	f.machine.RegisterNetwork(c)
	o := c.Flags()
	o.SetInterspersed(false)
	o.StringVar(&f.devices, "devices", "", "real (GPUs of this machine), virtual (none are needed), none "+
		"(the program uses no CUDA); default: real where there are GPUs")
	o.StringVar(&f.clock, "time", "",
		"record, virtual, measured or paced; default: record on real devices, else virtual")
	o.StringVar(&f.record, "record", "", "write each rank's calls to `FILE` (.jsonl), which replay reads")
	o.StringVar(&f.log, "log", "",
		"write the calls to `FILE` as lines of NCCL's log (NCCL_DEBUG_SUBSYS=COLL)")
	o.StringVar(&f.workload, "workload", "", "write the job to `FILE` in simccl's own text")
	table.Register(o, table.In("", table.Of(&f.trace, "trace", "", "",
		"write the simulated timeline to `FILE` (.json, .json.gz, .pftrace)", "outputs.trace")))
	o.BoolVar(&f.data, "data", false, "move and reduce data; without it buffers are never touched")
	o.BoolVar(&f.audit, "audit", false,
		"redirect libraries that the program opens by their path, too (LD_AUDIT; vLLM)")
	o.DurationVar(&f.timeout, "timeout", intercept.DefaultLimit,
		"how `LONG` ranks that wait may be silent until they are reported and ended")
	o.DurationVar(&f.progress, "progress", 30*time.Second,
		"say every `LONG` how many calls there were so far, 0 for never")
	o.IntVar(&f.real, "fake-ranks", 0, "only `N` ranks of each larger communicator are processes; every "+
		"other rank does what the nearest one below does")
	o.IntSliceVar(&f.grid, "fake-grid", nil, "with --fake-ranks, of what `SIZES` the job's groups are, "+
		"those of neighbors first (8,4); the processes are a smaller grid")
	o.Float64Var(&f.factor, "host-factor", 1,
		"under --time measured, the host of the cluster takes `FACTOR` times as long as this one")
	o.Float64Var(&f.speed, "host-speed", 1, "under --time measured, the host of the cluster is `SPEED` "+
		"times as fast as this one: 1/SPEED of --host-factor")
	o.BoolVar(&f.noRun, "no-simulation", false, "only record: the job is not simulated at the end")
	return c
}

func some(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fail.Usage("%s: COMMAND missing; write it after --: simccl intercept -- ./program",
			cmd.CommandPath())
	}
	return nil
}

// word finds a word of a list.
func word(flag, s string, words []string) (int, error) {
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
func (f *flags) isGrid() bool {
	n := 1
	for _, d := range f.grid {
		if d < 2 || d > maxRanks/n {
			return false
		}
		n *= d
	}
	return f.real > 0 && f.real < n && len(f.grid) <= maxSizes
}

// modes are --devices and --time.
func (f *flags) modes(o *intercept.Options) error {
	o.Devices = collector.Pretend
	if f.devices != "" {
		i, err := word("--devices", f.devices, collector.DeviceWords[:])
		if err != nil {
			return err
		}
		o.Devices = collector.Devices(i)
	} else if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		o.Devices = collector.Real
	}
	o.Clock = collector.Virtual
	if o.Devices == collector.Real {
		o.Clock = collector.Record
		if f.data {
			o.Clock = collector.Measured
		}
	}
	if f.clock != "" {
		i, err := word("--time", f.clock, collector.Clocks[:])
		if err != nil {
			return err
		}
		o.Clock = collector.Clock(i)
	}
	o.Data, o.Audit, o.Limit, o.Factor = f.data, f.audit, f.timeout, f.factor/f.speed
	o.Real, o.Grid, f.hosted = f.real, f.grid, o.Clock == collector.Measured
	switch {
	case o.Devices == collector.Real && o.Clock == collector.Paced:
		return fail.NotYet("real streams that wait as long as the cluster takes",
			"--devices real --time paced: write record, virtual or measured")
	case o.Data && o.Clock == collector.Record:
		return fail.Usage("--data: calls return before they are matched under --time record; write --time " +
			"virtual or measured")
	case f.real < 0 || f.real > 0 && f.data:
		return fail.Usage("--fake-ranks %d: write at least 1, without --data: ranks that no process is "+
			"have no data", f.real)
	case f.grid != nil && !f.isGrid():
		return fail.Usage("--fake-grid %s: write up to %d sizes of at least 2, of which processes are less "+
			"than all, with --fake-ranks: --fake-ranks 4 --fake-grid 8,4", strings.Trim(fmt.Sprint(f.grid),
			"[]"), maxSizes)
	case !(f.factor > 0 && f.factor <= 1000):
		return fail.Usage("--host-factor %g: write a factor above 0, at most 1000", f.factor)
	case !(f.speed >= 0.001 && f.speed <= 1000):
		return fail.Usage("--host-speed %g: write how many times as fast the host is, from 0.001 to 1000",
			f.speed)
	case f.speed != 1 && f.factor != 1:
		return fail.Usage("--host-speed %g: --host-factor %g says the same of the host; write one of them",
			f.speed, f.factor)
	case f.progress < 0:
		return fail.Usage("--progress %v: write how often, as 10s, or 0 for never", f.progress)
	case f.timeout < time.Second:
		return fail.Usage("--timeout %v: write at least 1s", f.timeout)
	}
	return nil
}

// setting is what is known of the machine.
func (f *flags) setting(a *cli.App, o *intercept.Options) (*scenario.Spec, *scenario.Site, *job.Machine,
	error) {
	spec, err := f.machine.Spec(a)
	if err != nil {
		return nil, nil, nil, err
	}
	spec.Outputs.Trace = f.trace
	site, err := scenario.Load(&spec, a.Options(nil))
	if err != nil {
		return nil, nil, nil, a.AsFlags(err)
	}
	m, err := site.Session(&spec)
	if err != nil {
		return nil, nil, nil, a.AsFlags(err)
	}
	o.GPUs, o.Memory = m.Cluster.NRanks(), 80<<30
	for _, s := range m.Cluster.Host(0).Systems {
		for _, id := range s.Of(topo.GPU) {
			o.SM = max(o.SM, s.Nodes[id].GPU.SM)
		}
	}
	if o.Clock != collector.Record {
		o.Prices = m.Prices()
	}
	return &spec, site, m, nil
}

func run(cmd *cobra.Command, a *cli.App, f *flags, args []string) error {
	o := intercept.Options{Command: args, Dir: a.Dir, Env: a.Environ, Stdin: os.Stdin, Stdout: a.Out,
		Stderr: a.Err}
	if err := f.modes(&o); err != nil {
		return err
	}
	spec, site, m, err := f.setting(a, &o)
	if err != nil {
		return err
	}
	o.Every, o.Reports = f.progress, func(p intercept.Progress) {
		fmt.Fprintf(a.Err, "simccl: %v: %d processes", p.Since.Round(time.Second), p.Procs)
		if o.Clock != collector.Record {
			fmt.Fprintf(a.Err, ", %d calls of NCCL, %.3f us on the clock of the program", p.Calls,
				float64(p.Elapsed/1000)/1000)
		}
		fmt.Fprintln(a.Err)
	}
	o.Warn = func(text string) { fmt.Fprintf(a.Err, "simccl: %s\n", text) }
	if a.JSON { // the program's output is not part of the document
		o.Stdout = a.Err
	}
	if exe, err := os.Executable(); err == nil {
		o.Beside = filepath.Dir(exe)
	}
	if o.Cache, err = os.UserCacheDir(); err != nil {
		o.Cache = os.TempDir()
	}
	o.CC, _ = a.Getenv("CC")
	res, err := intercept.Run(cmd.Context(), o)
	if err != nil {
		return failure(err)
	}
	r := report{Calls: res.Calls, Processes: res.Procs, Exit: res.Exit, Faults: res.Faults,
		Clock: o.Clock.String(), Devices: o.Devices.String(), ElapsedUs: float64(res.Elapsed/1000) / 1000}
	if err := f.write(a, res.Record); err != nil {
		return err
	}
	if err := f.simulate(cmd, a, &r, res, spec, site, m); err != nil {
		return err
	}
	if err := r.print(a); err != nil {
		return err
	}
	return verdict(res, o.Data)
}

// failure gives errors their kinds.
func failure(err error) error {
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

// verdict is what the exit status says. Without data a program may fail for acting on what it
// has not received: PyTorch's DDP compares shapes of parameters that it gathers.
func verdict(res *intercept.Result, data bool) error {
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
func (f *flags) write(a *cli.App, r *calls.Record) error {
	for _, out := range []struct {
		name, what string
		write      func(io.Writer) error
	}{
		{f.record, "record, ", r.Write},
		{f.log, "log, ", r.WriteLog},
		{f.workload, "workload, ", func(w io.Writer) error {
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
func (f *flags) simulate(cmd *cobra.Command, a *cli.App, r *report, res *intercept.Result,
	spec *scenario.Spec, site *scenario.Site, m *job.Machine) error {
	if res.Calls == 0 || f.noRun {
		return nil
	}
	p, timed := res.Record.Timed()
	how := replay.Options{Host: 1}
	rep, out, err := replay.Run(cmd.Context(), &load.Job{Program: p}, p, m, how)
	switch {
	case cmd.Context().Err() != nil:
		return context.Cause(cmd.Context())
	case err != nil: // what was called cannot be carried out, or not be simulated
		r.Note = err.Error()
		return nil
	}
	r.Job = rep
	r.Timed = replay.Between(out, timed)
	if f.hosted {
		if r.Host, err = replay.Hosts(cmd.Context(), p, m, out, timed, how.Fidelity); err != nil {
			return err
		}
	}
	if f.trace == "" {
		return nil
	}
	if err := site.TraceJob(spec, a.Options(nil), out); err != nil {
		return a.AsFlags(err)
	}
	a.WroteOf(f.trace, "trace, ", "open it in https://ui.perfetto.dev")
	return nil
}

// report is the document of --json.
type report struct {
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
	// Host is what hosts take of these times, where they are measured.
	Host *replay.Hosting `json:"host,omitempty"`
}

func (r *report) print(a *cli.App) error {
	if a.JSON {
		return a.PrintJSON(r)
	}
	fmt.Fprintf(a.Err, "simccl: %d calls of NCCL, --devices %s --time %s", r.Calls, r.Devices, r.Clock)
	if r.Processes == 0 {
		fmt.Fprint(a.Err, ": the program has not called it, or found another libnccl.so.2 (see --audit)")
	} else if r.ElapsedUs > 0 {
		fmt.Fprintf(a.Err, ", %.3f us on the clock of the program", r.ElapsedUs)
	}
	fmt.Fprintln(a.Err)
	if r.Note != "" {
		fmt.Fprintf(a.Err, "simccl: the calls are not simulated: %s\n", r.Note)
	}
	if r.Job == nil {
		return nil
	}
	if err := r.Job.WriteText(a.Out, true); err != nil || r.Timed == nil {
		return err
	}
	return r.steps(a.Out)
}

// steps writes what the program's own events come to in the job.
func (r *report) steps(w io.Writer) error {
	median, _, n := replay.Slowest(r.Timed)
	_, err := fmt.Fprintf(w, "\nbetween events that the program has timed: median %.3f ms, of %d (the "+
		"slowest rank; compute and communication share the GPU)\n", median/1000, n)
	if err == nil && r.Host != nil {
		_, err = fmt.Fprintln(w, r.Host)
	}
	return err
}
