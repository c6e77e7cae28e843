package sim_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// TestStories simulates one small operation for each file of testdata/stories
// and compares every event with the file's: the timing model by example.
//
// A file is a txtar archive. Its comment explains what happens; "scenario.json"
// is the scenario; "show" lists the events to print beside kernels and steps
// (nic, proxy, link, transfer, network, operation); "sums" has equations such as
//
//	alone = gap_ll
//	  + 2*(ll_op + ll_hop)
//
// in which alone is the time of one operation by itself, loop its time among
// the twenty that nccl-tests times together, finishN the end of rank N, and all
// other names are quantities of the machine class: the test fails where the two
// sides differ by more than a nanosecond, whatever the golden says. "want" is
// what the test prints; -update writes it.
//
// The class is testdata/stories/round.json, of round numbers and no jitter. So
// a story changes with the model and not with a new fit of a class.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txtar")
	if err != nil || len(files) < 10 {
		t.Errorf("%d stories, want at least 10 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			s := readStory(t, file)
			var b strings.Builder
			s.head(&b)
			s.events(t, &b)
			s.critical(t, &b)
			s.sums(t, &b, nil)
			s.compare(t, b.String())
		})
	}
}

// story is one simulated operation and what is reported of it.
type story struct {
	file        string
	archive     *txtar.Archive
	running     *scenario.Running
	outcome     scenario.Outcome // with the plan
	alone, loop exec.Result
	trace       trace.Memory
}

func (s *story) section(name string) string {
	for _, f := range s.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// storyFiles finds a story's files: in its archive, beside it, or among the
// project's topologies.
type storyFiles struct {
	own fstest.MapFS
	in  []fs.FS
}

func (f storyFiles) Open(name string) (fs.File, error) {
	name = path.Clean(name)
	if _, ok := f.own[name]; ok {
		return f.own.Open(name)
	}
	for _, dir := range f.in {
		if file, err := dir.Open(name); err == nil {
			return file, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func readStory(t *testing.T, file string) *story {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{file: file, archive: a}
	files := storyFiles{fstest.MapFS{}, []fs.FS{os.DirFS("testdata/stories"),
		os.DirFS(golden.Root(t, "testdata", "topos"))}}
	for _, f := range a.Files {
		files.own[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	spec, err := scenario.Parse([]byte(s.section("scenario.json")), file+"/scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.running, err = scenario.Prepare(spec, scenario.Options{Files: files}); err != nil {
		t.Fatal(err)
	}
	if n := s.running.Site.Comm.NRanks; len(s.running.Lines()) != 1 || n > 4 {
		t.Fatalf("%d operations of %d ranks, want one of at most 4", len(s.running.Lines()), n)
	}
	if s.outcome, err = s.running.Plan(s.running.Lines()[0].Operation, true); err != nil {
		t.Fatal(err)
	}
	s.run(t)
	return s
}

// run simulates the operation by itself, with a trace and without, and as the
// scenario has it.
func (s *story) run(t *testing.T) {
	t.Helper()
	cfg, err := s.running.Site.SimConfig(&s.running.Spec)
	if err != nil {
		t.Fatal(err)
	}
	once := func(kernels int, sink trace.Sink) exec.Result {
		cfg.Kernels, cfg.Trace = kernels, nccl.Options{Detail: nccl.DetailPacket}
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := x.Run(context.Background(), exec.One(s.outcome.Plan), sink)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sink := nccl.CriticalPath(&s.trace, nil)
	s.alone, s.loop = once(1, sink), once(0, trace.Discard)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	if silent := once(1, trace.Discard); silent.Elapsed != s.alone.Elapsed {
		t.Errorf("%v with a trace, %v without", s.alone.Elapsed, silent.Elapsed)
	}
	for _, fold := range []sim.Folding{sim.Unfolded, sim.FoldExact} { // and whatever is skipped or merged
		for _, whole := range []bool{false, true} {
			cfg.Fold, cfg.NoSkip = fold, whole
			if got := once(0, trace.Discard); got.Elapsed != s.loop.Elapsed ||
				!slices.Equal(got.Finish, s.loop.Finish) || fullest(&got) != fullest(&s.loop) {
				t.Errorf("fold %v, nothing skipped %t: %v, else %v", fold, whole, got.Elapsed, s.loop.Elapsed)
			}
		}
	}
}

// head prints what was run and how long it took.
func (s *story) head(b *strings.Builder) {
	site, req := s.running.Site, &s.outcome.Plan.Req
	fmt.Fprintf(b, "%s, %d elements of %v; ranks %d, nodes %d\n", s.running.Func().TestName(), req.Count,
		req.Type, site.Comm.NRanks, site.Comm.NNodes)
	if site.Comm.NRanks > 1 { // one rank has no choice
		fmt.Fprintf(b, "choice    %s; channels %d, threads %d\n", s.outcome.Label(), req.Channels,
			32*req.Warps)
	}
	for r, f := range s.alone.Finish {
		fmt.Fprintf(b, "rank %d    ends at %.6f us\n", r, f.Micros())
	}
	fmt.Fprintf(b, "alone     %.6f us\nin a loop %.6f us\n", s.alone.Elapsed.Micros(),
		s.loop.Elapsed.Micros())
}

// row is an event as it is printed.
type row struct {
	order
	text string
}

type order struct {
	start, end units.Time
	process    int64
	thread     int64
	n          int
}

func compareRows(a, b row) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.process, b.process),
		cmp.Compare(a.thread, b.thread), cmp.Compare(a.end, b.end), cmp.Compare(a.n, b.n))
}

// events prints the kernels, steps and what else is to be shown, by time.
func (s *story) events(t *testing.T, b *strings.Builder) {
	var rows []row
	for i := range s.trace.Events {
		e := &s.trace.Events[i]
		if !s.shows(e) {
			continue
		}
		checkTerms(t, e)
		tr := &s.trace.Tracks[e.Track]
		r := row{order: order{e.Start, e.Start + e.Dur, tr.Process, tr.Thread, i}}
		if e.Phase == trace.Slice {
			r.text = fmt.Sprintf("%9.3f %9.3f  %-28s %s%s", e.Start.Micros(), r.end.Micros(), place(tr),
				what(e), terms(e))
		} else {
			r.text = fmt.Sprintf("%9.3f %9s  %-28s %s", e.Start.Micros(), "", place(tr), what(e))
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, compareRows)
	fmt.Fprintf(b, "\n%9s %9s  %-28s %s\n", "start", "end", "where",
		"what, and what its time consists of (us)")
	for _, r := range rows {
		b.WriteString(r.text + "\n")
	}
}

// kinds are the words of "show", by category.
var kinds = map[string]string{"COLL": "operation", "P2P": "operation", "GPU": "kernel", "P2P_XFER": "step",
	"NET": "step", "PROXY": "proxy",
	"NET_IB": "nic", "NET_SOCK": "nic", "network": "network", "link": "transfer"}

// shows reports whether an event is printed.
func (s *story) shows(e *trace.Event) bool {
	kind := kinds[e.Cat]
	switch {
	case e.Phase == trace.Counter && strings.HasSuffix(e.Name, " GB/s"):
		kind = "link"
	case e.Cat == "sim" && e.Name != "tuner":
		kind = "step" // a fault
	}
	return kind == "kernel" || kind == "step" || kind != "" &&
		slices.Contains(strings.Fields(s.section("show")), kind)
}

var (
	laneOf = regexp.MustCompile(` · (step|op) \d+$`)
	sendTo = regexp.MustCompile(`^(ch \d+) → .*$`)
	recvOf = regexp.MustCompile(`^(ch \d+) ← .*$`)
)

// place names a track in short.
func place(t *trace.Track) string {
	name := strings.TrimPrefix(laneOf.ReplaceAllString(t.ThreadName, ""), "comm 0 ")
	// the peer is among the arguments
	name = recvOf.ReplaceAllString(sendTo.ReplaceAllString(name, "$1 send"), "$1 recv")
	switch {
	case t.Process >= nccl.RankPID && t.Process < nccl.NICPID:
		return fmt.Sprintf("rank %d %s", t.Process-nccl.RankPID, name)
	case t.Process >= nccl.NICPID && t.Process < nccl.LinksPID:
		return strings.ReplaceAll(strings.TrimPrefix(t.ProcessName, "NIC "), " · ", " ") + " " + name
	}
	return name
}

// what names an event with the arguments that matter.
func what(e *trace.Event) string {
	args := map[string]trace.Arg{}
	for _, a := range e.Args {
		args[a.Key] = a
	}
	switch e.Cat {
	case "P2P_XFER", "NET":
		return fmt.Sprintf("%s step %d, %d B, peer %d", e.Name, args["Step"].Int, args["bytes"].Int,
			args["Peer"].Int)
	case "NET_IB":
		return fmt.Sprintf("%s %d, %d B", args["opcode"].Str, args["wr_id"].Int, args["size"].Int)
	case "NET_SOCK":
		return fmt.Sprintf("%s %d B", args["op"].Str, args["size"].Int)
	case "link":
		return fmt.Sprintf("%s channel %d, %d B", e.Name, args["Channel"].Int, args["bytes"].Int)
	case "sim":
		return e.Name + ": " + args["reason"].Str
	case "":
		return fmt.Sprintf("%g GB/s", args["GB/s"].Num)
	}
	return e.Name
}

// terms prints what the time of a slice consists of.
func terms(e *trace.Event) string {
	t, ok := nccl.ParseTerms(e.Args)
	if !ok {
		return ""
	}
	var parts []string
	for i := range nccl.NumTerms {
		if t[i] > 0 {
			parts = append(parts, fmt.Sprintf("%v %.3f", i, t[i].Micros()))
		}
	}
	return " = " + strings.Join(parts, " + ")
}

// checkTerms fails where the terms of a slice do not add up to its length.
func checkTerms(t *testing.T, e *trace.Event) {
	t.Helper()
	sum, ok := nccl.ParseTerms(e.Args)
	if off := sum.Sum() - e.Dur; ok && e.Cat != "COLL" && e.Cat != "P2P" && max(off, -off) > 2*trace.Tick {
		t.Errorf("%s at %v takes %v, its terms add up to %v", e.Name, e.Start, e.Dur, sum.Sum())
	}
}

// critical prints the critical path. It begins at zero, has no gap and ends with
// the last rank. An operation without steps, as a copy of one rank, has none.
func (s *story) critical(t *testing.T, b *strings.Builder) {
	b.WriteString("\ncritical path\n")
	last := units.Time(0)
	for i := range s.trace.Events {
		e := &s.trace.Events[i]
		if e.Cat != "critical" {
			continue
		}
		if e.Start != last {
			t.Errorf("the critical path has a gap from %v to %v", last, e.Start)
		}
		last = e.Start + e.Dur
		fmt.Fprintf(b, "%9.3f %9.3f  rank %d ch %02d %s\n", e.Start.Micros(), last.Micros(), e.Args[0].Int,
			e.Args[1].Int, e.Name)
	}
	if end := slices.Max(s.alone.Finish); last > 0 && max(last-end, end-last) > trace.Tick {
		t.Errorf("the critical path ends at %v, the last rank at %v", last, end)
	}
}

// sums evaluates the equations of the story, and prints them with the
// quantities that they name; more are further names.
func (s *story) sums(t *testing.T, b *strings.Builder, more map[string]float64) {
	text := strings.TrimSpace(s.section("sums"))
	if text == "" {
		t.Error("no sums: say what the time adds up to")
		return
	}
	pkg := types.NewPackage("story", "story")
	define := func(name string, v float64) {
		pkg.Scope().Insert(types.NewConst(token.NoPos, pkg, name, types.Typ[types.UntypedFloat],
			constant.MakeFloat64(v)))
	}
	define("alone", s.alone.Elapsed.Micros())
	define("loop", s.loop.Elapsed.Micros())
	for r, f := range s.alone.Finish {
		define(fmt.Sprintf("finish%d", r), f.Micros())
	}
	for name, v := range more {
		define(name, v)
	}
	b.WriteString("\nquantities\n")
	for _, q := range gpu.Quantities() {
		define(q.Name, *q.At(s.running.Site.Class()))
		if regexp.MustCompile(`\b` + q.Name + `\b`).MatchString(text) {
			fmt.Fprintf(b, "%-18s %s: %s\n", q.Name,
				strings.TrimSuffix(fmt.Sprintf("%g %s", *q.At(s.running.Site.Class()), q.Unit), " 1"),
				q.Meaning)
		}
	}
	b.WriteString("\nsums\n")
	for line := range strings.Lines(strings.ReplaceAll(text, "\n  ", " ")) {
		left, right, _ := strings.Cut(strings.TrimSpace(line), " = ")
		x, y := value(t, pkg, left), value(t, pkg, right)
		if d := x - y; max(d, -d) > 1e-3 {
			t.Errorf("%s is %.6f us, %s is %.6f us", left, x, right, y)
		}
		fmt.Fprintf(b, "%s\n", left)
		for _, term := range summands(right) {
			fmt.Fprintf(b, "%9.3f  %s\n", value(t, pkg, term), term)
		}
		fmt.Fprintf(b, "%9.3f\n", y)
	}
}

// summands splits a sum at the plus signs outside all parentheses.
func summands(sum string) (out []string) {
	depth, from := 0, 0
	for i, c := range sum {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case '+':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(sum[from:i])), i+1
			}
		}
	}
	return append(out, strings.TrimSpace(sum[from:]))
}

// value evaluates an expression of constants, as Go writes it.
func value(t *testing.T, pkg *types.Package, expr string) float64 {
	t.Helper()
	tv, err := types.Eval(token.NewFileSet(), pkg, token.NoPos, expr)
	if err != nil || tv.Value == nil {
		t.Fatalf("sums: %q: %v", expr, err)
	}
	v, _ := constant.Float64Val(constant.ToFloat(tv.Value))
	return v
}

// compare holds the section "want" against what was printed, line by line.
func (s *story) compare(t *testing.T, got string) {
	t.Helper()
	i := slices.IndexFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == "want" })
	if i < 0 {
		s.archive.Files = append(s.archive.Files, txtar.File{Name: "want"})
		i = len(s.archive.Files) - 1
	}
	s.archive.Files[i].Data = []byte(got)
	golden.Text(t, s.file, string(bytes.TrimLeft(txtar.Format(s.archive), "\n")))
}
