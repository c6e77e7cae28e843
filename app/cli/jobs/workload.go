package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/transform"
	"github.com/spf13/cobra"
)

// Workload returns `simccl workload`.
func Workload(a *cli.App) *cobra.Command {
	c := cli.Group("workload", "Jobs as files: show, check, convert, cut, scale and make them", show(a),
		lint(a), convert(a), slice(a), scale(a), generate(a))
	c.Long = `workload reads what profilers, loggers and other simulators wrote, recognised by
content, also compressed and in tar archives: Kineto traces of torch.profiler (all
ranks of a run), PyTorch and Chakra execution traces, Flight Recorder dumps (JSON
and pickle), NCCL logs with COLL lines, SimAI, AICB, GOAL (text and binary), the
Inspector's records and simccl's own text. A folder means the files in it;
Kineto traces are the job, and what lies beside them completes it.`
	return c
}

// Files are the arguments and flags of all commands that read a job.
type Files struct {
	Names     []string // files and folders; "-" is standard input
	Ranks     int      // 0: as the files say
	Symmetric bool     // ranks without a recording do what the first recorded rank does
}

// Register declares the options; the names are arguments.
func (f *Files) Register(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In("",
		flags.Of(&f.Ranks, "ranks", "", 0,
			"number of `N` ranks, where the files do not say or another is wanted"),
		flags.Of(&f.Symmetric, "symmetric", "", false,
			"ranks without a recording do what the first recorded rank does")))
}

// someFiles requires at least one argument.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fail.Usage("%s: FILE or DIR missing; see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// stdin is the name of standard input.
const stdin = "-"

// Read reads the files, and the files of folders, as one job. Errors are of package fail and name the file.
func (f *Files) Read(a *cli.App) (*load.Job, error) { return f.read(a, load.Options{}) }

func (f *Files) read(a *cli.App, o load.Options) (*load.Job, error) {
	var files []load.File
	for i, name := range f.Names {
		if name == stdin {
			if slices.Contains(f.Names[:i], stdin) {
				return nil, fail.Usage("-: standard input is read once; leave one out")
			}
			files = append(files, load.File{Name: stdin, Open: func() (io.ReadCloser, error) {
				return io.NopCloser(os.Stdin), nil
			}})
			continue
		}
		info, err := os.Stat(a.Path(name))
		if err != nil {
			return nil, fail.Input(err)
		}
		if !info.IsDir() {
			files = append(files, jobFile(a, name))
			continue
		}
		entries, err := os.ReadDir(a.Path(name))
		if err != nil {
			return nil, fail.Input(err)
		}
		for _, e := range entries {
			if e.Type().IsRegular() {
				files = append(files, jobFile(a, filepath.Join(name, e.Name())))
			}
		}
	}
	var err error
	if o.Budget, err = a.Budget(); err != nil {
		return nil, err
	}
	o.Ranks, o.Symmetric = f.Ranks, f.Symmetric
	j, err := load.Load(files, o)
	if err != nil {
		return nil, fail.Input(err)
	}
	return j, nil
}

func jobFile(a *cli.App, name string) load.File {
	return load.File{Name: name, Open: func() (io.ReadCloser, error) { return a.OpenSoon(name) }}
}

// WorkloadShowOptions are the flags and arguments of show.
type WorkloadShowOptions struct{ Job Files }

func show(a *cli.App) *cobra.Command {
	var o WorkloadShowOptions
	c := &cobra.Command{Use: "show FILE|DIR...",
		Short: "Say what a job does: ranks, groups, calls, bytes, times",
		Long: `show reads a job and prints its groups with the calls and bytes of a rank, what
is computed, the host's time, and of recordings what each measured: communication
and how much of it no other work hides, how clocks differ, what was inferred. Of a job
of which ranks have no recording it shows the others.`,
		Example: "  simccl workload show recording\n" +
			"  simccl workload show recording/trace_rank0.json.gz --symmetric --json",
		Args: someFiles,
		RunE: cli.RunWith(a, &o, &o.Job.Names)}
	o.Job.Register(c)
	return c
}

// Run prints what the job does, as far as files have it.
func (o *WorkloadShowOptions) Run(_ context.Context, a *cli.App) error {
	j, err := o.Job.read(a, load.Options{Partial: true})
	if err != nil {
		return err
	}
	s := page.JobOf(j)
	if a.JSON {
		return a.PrintJSON(s)
	}
	return s.WriteText(a.Out)
}

// WorkloadLintOptions are the flags and arguments of lint.
type WorkloadLintOptions struct{ Job Files }

// lintResult is the JSON output of lint.
type lintResult struct {
	Format   string   `json:"format"`
	Ranks    int      `json:"ranks"`
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
	Notes    []string `json:"notes"`
}

func lint(a *cli.App) *cobra.Command {
	var o WorkloadLintOptions
	c := &cobra.Command{Use: "lint FILE|DIR...", Short: "Check that a job can be carried out",
		Long: `lint checks that members of a group issue the same calls in the same order and of
the same sizes, that sends have receives, and that the job does not deadlock on a
network without delay. Exit status 7 when something is wrong. Calls that were recorded
faster than the links of their GPU are a note.`,
		Example: "  simccl workload lint recording",
		Args:    someFiles,
		RunE:    cli.RunWith(a, &o, &o.Job.Names)}
	o.Job.Register(c)
	return c
}

// Run prints what is wrong, and fails where something is.
func (o *WorkloadLintOptions) Run(ctx context.Context, a *cli.App) error {
	j, err := o.Job.read(a, load.Options{Faulty: true})
	if err != nil {
		return err
	}
	r := lintResult{Format: j.Format.String(), Ranks: j.Program.Ranks(),
		Problems: problems(ctx, j.Program), Notes: append(slices.Clone(j.Notes), tooFast(j)...)}
	r.OK = len(r.Problems) == 0
	if r.Notes == nil {
		r.Notes = []string{}
	}
	if a.JSON {
		err = a.PrintJSON(r)
	} else {
		text := strings.Join(append(r.Problems, prefixed("note: ", r.Notes)...), "\n") + "\n"
		if r.OK {
			text = fmt.Sprintf("ok: %d ranks, %d calls\n%s", r.Ranks, len(j.Program.Calls),
				strings.TrimPrefix(text, "\n"))
		}
		err = a.PrintText(text)
	}
	if err == nil && !r.OK {
		err = fail.Printed("%d problems", len(r.Problems))
	}
	return err
}

func prefixed(prefix string, list []string) (out []string) {
	for _, x := range list {
		out = append(out, prefix+x)
	}
	return out
}

// problems returns the problems that Lint finds, else a deadlock.
func problems(ctx context.Context, p *workload.Program) []string {
	out := []string{}
	if err := p.Lint(); err != nil {
		var joined interface{ Unwrap() []error }
		if !errors.As(err, &joined) {
			return append(out, err.Error())
		}
		for _, e := range joined.Unwrap() {
			out = append(out, e.Error())
		}
		return out
	}
	// Messages of up to 32 MiB fit into the buffers of a connection.
	if _, err := streams.Run(ctx, streams.Apart(p, nil, 32<<20)); err != nil {
		out = append(out, err.Error())
	}
	return out
}

// tooFast returns the calls whose recorded bandwidth exceeds that of their GPU's links, which means that
// clocks, sizes or groups are wrong. If the recording does not name its GPU, the fastest GPU of all is
// assumed. The check needs no machine: whatever connects the GPUs is no faster.
func tooFast(j *load.Job) (out []string) {
	link, of := datasheet.FastestLink(), "the fastest of any GPU"
	if g, ok := datasheet.Find(j.Meta.GPU); ok {
		link, of = g.Link, "those of "+g.Name
	}
	for i := range j.Program.Calls {
		c := &j.Program.Calls[i]
		if int(c.Comm) >= len(j.Program.Comms) || c.Comm < 0 {
			continue // named as a problem
		}
		if rate := j.Program.Rate(c) / 1e9; rate > link*fastTolerance {
			out = append(out, fmt.Sprintf("%s of %d bytes on %s was recorded with %.3g us: each GPU's "+
				"links would carry %.0f GB/s, and %s carry %g; its size, its group or the clocks of ranks "+
				"are wrong",
				c.Func.TestName(), int64(c.Bytes()), j.Program.Comms[c.Comm].Name, c.Recorded.Micros(), rate,
				of, link))
		}
	}
	return out
}

// fastTolerance allows for the inaccuracy of recorded times: kernels end at different times on the ranks.
const fastTolerance = 1.1

// WorkloadSliceOptions are the flags and arguments of slice.
type WorkloadSliceOptions struct {
	Job      Files
	Only     string // ranks, as 0-3,8; empty: all
	From, To string // marks; empty: the begin, the next mark
	Out      string // a file; empty: standard output
}

func slice(a *cli.App) *cobra.Command {
	var o WorkloadSliceOptions
	c := &cobra.Command{Use: "slice FILE|DIR...", Short: "Keep some ranks or iterations of a job",
		Long: `slice keeps the ranks that --only names, in that order, and of recordings the
iterations from --from to the next one or to --to. Groups keep the members that
stay; calls without a partner go. The result is simccl's text.`,
		Example: "  simccl workload slice recording --from ProfilerStep#1 -o step.txt\n" +
			"  simccl workload slice step.txt --only 0",
		Args: someFiles,
		RunE: cli.RunWith(a, &o, &o.Job.Names)}
	o.Job.Register(c)
	c.Flags().StringVar(&o.Only, "only", "", "keep the `RANKS`, as 0-3,8")
	c.Flags().StringVar(&o.From, "from", "", "begin at the `MARK`, as ProfilerStep#1")
	c.Flags().StringVar(&o.To, "to", "", "end at the `MARK` instead of the next one")
	c.Flags().StringVarP(&o.Out, "out", "o", "", "write to `FILE` instead of standard output")
	return c
}

// Run cuts the job to the span between two marks and to some ranks, and writes it.
func (o *WorkloadSliceOptions) Run(_ context.Context, a *cli.App) error {
	j, err := o.Job.Read(a)
	if err != nil {
		return err
	}
	p := j.Program
	if o.From != "" {
		if p, err = transform.Between(p, o.From, o.To); err != nil {
			return fail.Usage("--from: %v", err)
		}
	}
	if o.Only != "" {
		list, err := rankList(o.Only)
		if err != nil {
			return err
		}
		var dropped int
		if p, dropped, err = transform.Ranks(p, list); err != nil {
			return fail.Usage("--only: %v", err)
		}
		if dropped > 0 {
			a.Warn("%d calls have no partner among these ranks and were left out", dropped)
		}
	}
	return writeText(a, o.Out, p.Format())
}

// rankList parses a list of ranks and ranges, "0-3,8".
func rankList(text string) (list []int32, err error) {
	for part := range strings.SplitSeq(text, ",") {
		a, b, ranged := strings.Cut(part, "-")
		if !ranged {
			b = a
		}
		lo, err1 := strconv.ParseInt(a, 10, 32)
		hi, err2 := strconv.ParseInt(b, 10, 32)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo || hi-lo > 1<<24 {
			return nil, fail.Usage("--only %s: %q is no rank or range; write 0-3,8", text, part)
		}
		for r := lo; r <= hi; r++ {
			list = append(list, int32(r))
		}
	}
	return list, nil
}

// WorkloadScaleOptions are the flags and arguments of scale.
type WorkloadScaleOptions struct {
	Job  Files
	DP   int     // ranks of a data parallel group; 0: as they are
	Host float64 // factor of the host's time
	Out  string  // a file; empty: standard output
}

func scale(a *cli.App) *cobra.Command {
	var o WorkloadScaleOptions
	c := &cobra.Command{Use: "scale FILE|DIR...",
		Short: "Make a job larger by data parallel replicas, or its host faster",
		Long: `scale makes data parallel groups larger by replicas of the whole job: what DDP
reduces stays, the shards of FSDP shrink. TP, PP, CP and EP change what ranks
compute; generate such jobs anew. --host multiplies the host's time (0: none). The
result is simccl's text.`,
		Example: "  simccl workload scale ddp.txt --dp 16 -o large.txt\n" +
			"  simccl workload scale recording --host 0.4 -o fast.txt",
		Args: someFiles,
		RunE: cli.RunWith(a, &o, &o.Job.Names)}
	o.Job.Register(c)
	c.Flags().IntVar(&o.DP, "dp", 0, "make data parallel groups `N` ranks large")
	c.Flags().Float64Var(&o.Host, "host", 1, "multiply the host's time by the `FACTOR`")
	c.Flags().StringVarP(&o.Out, "out", "o", "", "write to `FILE` instead of standard output")
	return c
}

// Run writes the job with larger data parallel groups, or another factor on the host's time.
func (o *WorkloadScaleOptions) Run(_ context.Context, a *cli.App) error {
	j, err := o.Job.Read(a)
	if err != nil {
		return err
	}
	p := j.Program
	if o.Host != 1 {
		if p, err = transform.Host(p, o.Host); err != nil {
			return fail.Usage("--host: %v", err)
		}
	}
	if o.DP != 0 {
		if p, err = transform.DataParallel(p, o.DP); err != nil {
			return fail.Usage("--dp %d: %v", o.DP, err)
		}
	}
	return writeText(a, o.Out, p.Format())
}

// result is the JSON output about written files.
type result struct {
	Format string   `json:"format"`
	Text   string   `json:"text,omitempty"` // where it went to standard output
	Files  []string `json:"files"`
	Lost   []string `json:"lost"` // what the format cannot say
}

// writeText writes simccl's text to a file, or to standard output where none is named.
func writeText(a *cli.App, name, text string) error {
	r := result{Format: "native", Files: []string{}, Lost: []string{}}
	err := r.stream(a, name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	return r.print(a, err)
}

// stream writes to a file, or to standard output: as a member of the document with
// --json.
func (r *result) stream(a *cli.App, name string, f func(io.Writer) error) error {
	if name != "" && name != "-" {
		w, err := newfile.Create(a.Path(name))
		if err != nil {
			return err
		}
		r.Files = append(r.Files, name)
		return w.Finish(f(w))
	}
	if !a.JSON {
		return f(a.Out)
	}
	var b strings.Builder
	err := f(&b)
	r.Text = b.String()
	return err
}

// print prints the document of --json, or names what was lost.
func (r *result) print(a *cli.App, err error) error {
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(r)
	}
	for _, what := range r.Lost {
		a.Warn("%s does not say: %s", r.Format, what)
	}
	return nil
}
