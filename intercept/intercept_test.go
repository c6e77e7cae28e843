package intercept_test

import (
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/intercept"
	"github.com/simccl/simccl/intercept/collector"
	"github.com/simccl/simccl/intercept/shim"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/calls"
)

// built is the folder of the libraries and of the examples, which tests share.
var built struct {
	once  sync.Once
	dir   string
	err   error
	mu    sync.Mutex
	ready map[string]bool
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// libs builds the libraries, or skips where there is no C compiler.
func libs(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler here to build the libraries with")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "simccl-test-"); built.err == nil {
			built.err = shim.Build(filepath.Join(built.dir, "simccl-shim"), "")
		}
		built.ready = map[string]bool{}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "simccl-shim")
}

// example builds an example.
func example(t testing.TB, name string) string {
	t.Helper()
	dir := libs(t)
	built.mu.Lock()
	defer built.mu.Unlock()
	out := filepath.Join(built.dir, name)
	if built.ready[name] {
		return out
	}
	args := []string{"-O1", "-Wall", "-o", out, filepath.Join("testdata", "src", name+".c")}
	if name != "find" {
		args = append(args, "-L"+dir, "-l:libnccl.so.2", "-l:libcudart.so.12", "-Wl,-rpath-link,"+dir)
	}
	if text, err := exec.Command("cc", append(args, "-lpthread", "-lm", "-ldl")...).CombinedOutput(); err !=
		nil {
		t.Fatalf("%v\n%s", err, text)
	}
	built.ready[name] = true
	return out
}

// two are 2 x DGX H100: 16 GPUs.
func two(t testing.TB) *job.Machine { return nodes(t, 2) }

func nodes(t testing.TB, n int) *job.Machine {
	t.Helper()
	m := site.Nodes(filepath.Join(golden.Root(t), "testdata", "topos", "dgx-h100.xml"), n)
	s := site.Load(t, m)
	x, err := s.Session(&scenario.Spec{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// outcome is a run with what it wrote.
type outcome struct {
	*intercept.Result
	out, errs string
	warnings  []string
}

// intercepted runs a program on a machine; change completes the options.
func intercepted(t testing.TB, m *job.Machine, change func(o *intercept.Options), command ...string) outcome {
	t.Helper()
	libs(t)
	var out, errs bytes.Buffer
	var r outcome
	var mu sync.Mutex
	o := intercept.Options{Command: command, Env: os.Environ(), Beside: built.dir, Stdout: &out,
		Stderr: &errs, Limit: time.Minute}
	o.Clock, o.Devices, o.GPUs, o.SM, o.Memory, o.Prices = collector.Virtual, collector.Pretend,
		m.Cluster.NRanks(), 90, 80<<30, m.Prices()
	o.Warn = func(s string) { mu.Lock(); r.warnings = append(r.warnings, s); mu.Unlock() }
	if change != nil {
		change(&o)
	}
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Minute) // for what hangs
	defer stop()
	res, err := intercept.Run(ctx, o)
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", command, err, out.String(), errs.String())
	}
	r.Result, r.out, r.errs = res, out.String(), errs.String()
	return r
}

// want fails unless a program has ended with 0.
func (r *outcome) want(t testing.TB, out string) {
	t.Helper()
	if r.Exit != 0 || out != "" && r.out != out {
		t.Fatalf("ended with %d: %s%s%v", r.Exit, r.out, r.errs, r.warnings)
	}
}

// TestNames: libnccl.so.2 has the names of NCCL 2.28.9, each with its second one, and
// needs no library of CUDA's.
func TestNames(t *testing.T) {
	dir := libs(t)
	list, err := os.ReadFile(filepath.Join("testdata", "names-2.28.9.txt"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(filepath.Join(dir, shim.NCCL))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF {
			continue
		}
		have[s.Name] = true
		if !strings.HasPrefix(s.Name, "nccl") && !strings.HasPrefix(s.Name, "pnccl") {
			t.Errorf("it exports %s", s.Name)
		}
	}
	names := strings.Fields(string(list))
	if len(names) != 52 {
		t.Fatalf("%d names; NCCL 2.28.9 has 52", len(names))
	}
	for _, n := range names {
		if !have[n] || !have["p"+n] {
			t.Errorf("%s or p%s is missing", n, n)
		}
	}
	for n := range have {
		if p := strings.TrimPrefix(n, "p"); !have[p] || !have["p"+p] {
			t.Errorf("%s has no second name", n)
		}
	}
	if so, _ := f.DynString(elf.DT_SONAME); !slices.Equal(so, []string{"libnccl.so.2"}) {
		t.Errorf("its name is %v", so)
	}
	needed, _ := f.ImportedLibraries()
	for _, n := range needed {
		if n != shim.Core && !strings.HasPrefix(n, "libc.") && !strings.HasPrefix(n, "libdl.") &&
			!strings.HasPrefix(n, "ld-") {
			t.Errorf("it needs %s", n)
		}
	}
}

// TestTable: the table that a program prints of its own clock is that of simccl run,
// to the nanosecond, whether the ranks are threads, processes or a launcher's
// processes, and the same each time.
func TestTable(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates all sizes; without -short")
	}
	m, table := two(t), example(t, "table")
	launcher := []string{"sh", "-c", "for r in 3 2 1 0 4 5 6 7 15 14 13 12 11 10 9 8; do " +
		"OMPI_COMM_WORLD_RANK=$r NCCL_COMM_ID=127.0.0.1:29 " + table + " & done; wait"}
	sameTable(t, m, 1, []string{table}, []string{table}, []string{table, "fork"}, launcher)
	sameTable(t, m, 4, []string{table, "group"})
}

// sameTable runs table.c with some calls in a group each time, and compares what it prints with
// simccl run.
func sameTable(t *testing.T, m *job.Machine, several int, commands ...[]string) {
	want := map[string]float64{}
	spec := scenario.Spec{Machine: site.Nodes(filepath.Join(golden.Root(t), "testdata", "topos",
		"dgx-h100.xml"), 2),
		Workload: scenario.Workload{Op: "all_reduce", Sizes: []string{"8", "65536", "1M", "32M"},
			Group: several}}
	res, err := scenario.Run(context.Background(), spec, site.Options())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Rows {
		want[fmt.Sprint(int64(r.Bytes))] = float64(r.Out.Time) / 1000
	}
	first := ""
	for _, command := range commands {
		r := intercepted(t, m, nil, command...)
		r.want(t, first)
		first = r.out
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if len(lines) != len(want) {
			t.Fatalf("%d lines: %s", len(lines), r.out)
		}
		for _, l := range lines {
			var bytes string
			var ns float64
			if _, err := fmt.Sscan(l, &bytes, &ns); err != nil {
				t.Fatal(err)
			}
			if math.Abs(ns-want[bytes]) >= 1 {
				t.Errorf("%s bytes take %.2f ns, simccl run says %.2f", bytes, ns, want[bytes])
			}
		}
		if r.Calls != 16*4*25*several {
			t.Errorf("%d calls", r.Calls)
		}
	}
}

// TestOpenMPI: a process a rank, started by mpirun, gives the table of threads.
func TestOpenMPI(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates all sizes; without -short")
	}
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("no mpirun here")
	}
	m, table := two(t), example(t, "table")
	want := intercepted(t, m, nil, table)
	env := append(require.MPIEnv(t), "NCCL_COMM_ID=127.0.0.1:29")
	r := intercepted(t, m, func(o *intercept.Options) { o.Env = append(o.Env, env...) },
		mpirun, "--oversubscribe", "-n", "16", "-x", "NCCL_COMM_ID", table)
	r.want(t, want.out)
}

// TestPolls: a thread that has all GPUs of a node and polls their streams in turn takes
// what simccl run --procs 1 says, beside a thread that polls as well.
func TestPolls(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates all sizes; without -short")
	}
	spec := scenario.Spec{Machine: site.Nodes(filepath.Join(golden.Root(t), "testdata", "topos",
		"dgx-h100.xml"), 1), Engine: scenario.Engine{Processes: 1},
		Workload: scenario.Workload{Op: "all_reduce", Sizes: []string{"4K", "128K", "4M"}}}
	res, err := scenario.Run(context.Background(), spec, site.Options())
	if err != nil {
		t.Fatal(err)
	}
	r := intercepted(t, nodes(t, 1), nil, example(t, "poll"))
	r.want(t, "")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	for i, row := range res.Rows {
		var bytes int64
		var ns float64
		if _, err := fmt.Sscan(lines[i], &bytes, &ns); err != nil || bytes != int64(row.Bytes) ||
			math.Abs(ns-float64(row.Out.Time)/1000) >= 1 {
			t.Errorf("%s, simccl run says %d %.2f: %v", lines[i], row.Bytes, float64(row.Out.Time)/1000, err)
		}
	}
}

// TestRandomCalls: random calls on several communicators and streams are recorded as
// the program made them, and take the same however long its processes really wait.
func TestRandomCalls(t *testing.T) {
	m, random := two(t), example(t, "random")
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		var first, record string
		for delays := range 2 {
			r := intercepted(t, m, nil, random, fmt.Sprint(seed+1), fmt.Sprint(delays))
			r.want(t, first)
			var b bytes.Buffer
			if err := r.Record.Write(&b); err != nil {
				t.Fatal(err)
			}
			if delays > 0 && b.String() != record {
				t.Errorf("seed %d: the record depends on delays", seed+1)
			}
			first, record = r.out, b.String()
			if got := called(r.Record.Events[0]); !strings.HasPrefix(first, got) ||
				strings.Count(got, "\n") != strings.Count(first, "\n")-1 {
				t.Errorf("seed %d: recorded\n%s\nbut rank 0 called\n%s", seed+1, got, first)
			}
		}
		res, err := m.Run(context.Background(), mustRead(t, record).Program(), job.Options{})
		if err != nil || res.Elapsed() <= 0 {
			t.Errorf("seed %d: the job: %v", seed+1, err)
		}
	}
}

// called are the calls of a rank as random.c prints them.
func called(list []calls.Event) string {
	var b strings.Builder
	for _, e := range list {
		switch {
		case e.Kind != calls.Call || e.Func == coll.Recv:
		case e.Func == coll.Send:
			fmt.Fprintf(&b, "sendrecv %d\n", e.Count)
		default:
			fmt.Fprintf(&b, "%s %d\n", e.Func.TestName(), e.Count)
		}
	}
	return b.String()
}

func mustRead(t *testing.T, text string) *calls.Record {
	t.Helper()
	r, err := calls.Read(strings.NewReader(text), "record")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestData: all operations, types and reductions give right results.
func TestData(t *testing.T) {
	r := intercepted(t, two(t), func(o *intercept.Options) { o.Data = true }, example(t, "data"))
	r.want(t, "right\n")
}

// TestLife: communicators, groups, graphs and refusals; the record is the golden one,
// and can be simulated.
func TestLife(t *testing.T) {
	m := two(t)
	r := intercepted(t, m, func(o *intercept.Options) { o.Data = true }, example(t, "life"))
	r.want(t, "right\n")
	var b bytes.Buffer
	if err := r.Record.Write(&b); err != nil {
		t.Fatal(err)
	}
	golden.Text(t, filepath.Join("testdata", "life.jsonl"), b.String())
	if _, err := m.Run(context.Background(), r.Record.Program(), job.Options{}); err != nil {
		t.Error(err)
	}
}

// TestRanks: what ranks do in their lives gives right data and the golden record, whether they
// are threads, processes or those of Open MPI.
func TestRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: programs of several processes")
	}
	m, ranks := two(t), example(t, "ranks")
	commands := [][]string{{ranks}, {ranks, "fork"}}
	if mpirun, err := exec.LookPath("mpirun"); err == nil {
		commands = append(commands, []string{mpirun, "--oversubscribe", "-n", "16", "-x",
			"NCCL_COMM_ID=127.0.0.1:29", ranks})
	} else {
		t.Log("no mpirun here: threads and processes alone")
	}
	for _, command := range commands {
		r := intercepted(t, m, func(o *intercept.Options) {
			o.Data, o.Env = true, append(o.Env, require.MPIEnv(t)...)
		}, command...)
		r.want(t, "right\n")
		if len(r.warnings) > 0 {
			t.Errorf("%v: %v", command, r.warnings)
		}
		golden.Text(t, filepath.Join("testdata", "ranks.jsonl"), shape(t, r))
	}
}

// TestRefusals: every call that NCCL refuses has its code and a text of its own, and so have
// those of later versions, with both of their names.
func TestRefusals(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: programs of several processes")
	}
	dir := libs(t)
	of28, err := os.ReadFile(filepath.Join("testdata", "names-2.28.9.txt"))
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields(string(of28))
	f, err := elf.Open(filepath.Join(dir, shim.NCCL))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	command := []string{example(t, "refused")}
	for _, s := range symbols {
		if name := strings.TrimPrefix(s.Name, "p"); s.Section != elf.SHN_UNDEF &&
			name != "ncclResetDebugInitInternal" && !slices.Contains(known, name) {
			command = append(command, s.Name)
		}
	}
	if len(command) < 20 {
		t.Errorf("%d functions of later versions", len(command)-1)
	}
	r := intercepted(t, two(t), nil, command...)
	r.want(t, "right\n")
	if len(r.warnings) > 0 {
		t.Errorf("reports of faults: %v", r.warnings)
	}
}

// TestFakeRanks: two processes are 16 ranks of communicators; every rank has its calls
// in the record, which is that of 16 processes, as is the time.
func TestFakeRanks(t *testing.T) {
	m, fake := two(t), example(t, "fake")
	r := intercepted(t, m, func(o *intercept.Options) { o.Real = 2 }, fake, "16", "2")
	r.want(t, "")
	all := intercepted(t, m, nil, fake, "16", "16")
	all.want(t, r.out)
	if x, y := shape(t, r), shape(t, all); x != y {
		t.Errorf("recorded as\n%.3000s\nand of 16 processes\n%.3000s", x, y)
	}
	if r.Procs != 3 || r.Elapsed != all.Elapsed { // with the one that made the ids
		t.Errorf("%d processes, %v and %v", r.Procs, r.Elapsed, all.Elapsed)
	}
	p := r.Record.Program()
	res, err := m.Run(context.Background(), p, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := m.Prices().Collectives(context.Background(), p.Comms[0].Ranks,
		[]workload.Call{{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	var ns float64
	if _, err := fmt.Sscan(r.out, &ns); err != nil || math.Abs(ns-float64(3*one+m.Prices().Launch(1))/1000) >=
		1 {
		t.Errorf("3 operations of %v take %s ns: %v", one, r.out, err)
	}
	if res.Operations != 9 {
		t.Errorf("%d operations", res.Operations)
	}
	r = intercepted(t, m, func(o *intercept.Options) { o.Real = 2 }, fake, "16")
	r.want(t, all.out)
	// More processes than were said to come are refused.
	r = intercepted(t, m, func(o *intercept.Options) { o.Real, o.Limit = 2, 2*time.Second }, fake, "16", "4")
	if r.Exit == 0 || !strings.Contains(r.errs, "write --fake-ranks with as many as there are") {
		t.Errorf("ended with %d: %s", r.Exit, r.errs)
	}
}

// TestFound: NCCL is found by a program that opens it by name, or by its path under
// Audit; another library of the program's keeps its own functions.
func TestFound(t *testing.T) {
	m, find := two(t), example(t, "find")
	r := intercepted(t, m, nil, find)
	r.want(t, "right\n")
	dir := t.TempDir()
	source := filepath.Join(dir, "other.c")
	if err := os.WriteFile(source, []byte("int ncclGetVersion(int *v) { *v = 12345; return 0; }\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libnccl.so.2", "other.so"} {
		if text, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,-soname,"+name+".own", "-o",
			filepath.Join(dir, name), source).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	r = intercepted(t, m, func(o *intercept.Options) { o.Audit = true }, find,
		filepath.Join(dir, "libnccl.so.2"), filepath.Join(dir, "other.so"))
	r.want(t, "right\n")
}

// TestSignals: signals of the program that interrupt what it waits for lose nothing.
func TestSignals(t *testing.T) {
	r := intercepted(t, two(t), nil, example(t, "signals"))
	r.want(t, "right\n")
	if len(r.warnings) > 0 {
		t.Error(r.warnings)
	}
}

// TestRuntimes: programs of CUDA 11, 12 and 13 find the runtime with their version's symbols, also
// where the libraries of the others are loaded.
func TestRuntimes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: programs of several processes")
	}
	dir := libs(t)
	for i, name := range shim.Runtimes {
		program := filepath.Join(t.TempDir(), "runtime")
		if text, err := exec.Command("cc", "-O1", "-Wall", fmt.Sprintf("-DCUDART=%d", 11+i), "-o", program,
			filepath.Join("testdata", "src", "runtime.c"),
			"-L"+dir, "-l:libnccl.so.2", "-l:"+name, "-Wl,-rpath-link,"+dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		r := intercepted(t, two(t), nil, program)
		r.want(t, "right\n")
	}
}

// TestManyProcesses: 512 processes are ranks of communicators.
func TestManyProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("512 processes; without -short")
	}
	m, fake := nodes(t, 64), example(t, "fake")
	r := intercepted(t, m, nil, fake, "512", "512")
	r.want(t, "")
	two := intercepted(t, m, func(o *intercept.Options) { o.Real = 2 }, fake, "512", "2")
	two.want(t, r.out)
	if r.Calls != 512*9 || two.Calls != 2*9 || r.Elapsed != two.Elapsed {
		t.Errorf("%d calls in %v, and of two processes %d in %v", r.Calls, r.Elapsed, two.Calls, two.Elapsed)
	}
}

// TestRefused: programs that hold NCCL or CUDA's runtime themselves.
func TestRefused(t *testing.T) {
	libs(t)
	dir := t.TempDir()
	for _, c := range []struct{ name, source, want string }{
		{"nccl", "int ncclAllReduce(void) { return 0; }\nint main(void) { return 0; }\n", "libnccl_static"},
		{"cudart", "int cudaLaunchKernel(void) { return 0; }\nint main(void) { return 0; }\n",
			"libcudart_static"},
		{"nccl-stripped", "const char *const a[] = {\"NCCL_ALGO\", \"NCCL_PROTO\", \"NCCL_DEBUG\"};\n" +
			"int main(int n, char **v) { return a[n % 3] == v[0]; }\n", "libnccl_static"},
		{"cudart-stripped", "const char *const a[] = {\"libcuda.so.1\", \"cudaErrorInvalidValue\"};\n" +
			"int main(int n, char **v) { return a[n % 2] == v[0]; }\n", "libcudart_static"},
	} {
		source, program := filepath.Join(dir, c.name+".c"), filepath.Join(dir, c.name)
		if err := os.WriteFile(source, []byte(c.source), 0o644); err != nil {
			t.Fatal(err)
		}
		args := []string{"-o", program, source}
		if strings.HasSuffix(c.name, "stripped") {
			args = append(args, "-s")
		}
		if text, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		o := intercept.Options{Command: []string{program}, Beside: built.dir}
		o.Devices = collector.Pretend
		var refused *intercept.RefusedError
		if _, err := intercept.Run(context.Background(), o); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestWrongPrograms: what NCCL hangs in, or does not notice, is named and ends, on
// every rank with NCCL's code.
func TestWrongPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: programs of several processes")
	}
	m, wrong := two(t), example(t, "wrong")
	for _, c := range []struct{ fault, out, warning string }{
		{"none", "none: 4 x 0 0 other", ""},
		{"count", "count: 4 x 5 0 other", "1000 elements"},
		{"type", "type: 4 x 5 0 other", "type 2"},
		{"op", "op: 4 x 5 0 other", "reduction 2"},
		{"order", "order: 4 x 5 0 other", "AllGather"},
		{"root", "root: 4 x 5 0 other", "root 1"},
		{"group", "group: 4 x 5 0 other", "in a group"},
		{"message", "", "396 bytes"},
		{"alone", "alone: 2 x 0 2 x 6 0 other", "waits for ranks [1]"},
		{"killed", "killed: 3 x 6 1 other", ""},
		{"destroyed", "destroyed: 1 x 0 3 x 5 0 other", "rank 2 has"},
		{"split", "split: 4 x 6 0 other", "ranks [2] did not call ncclCommSplit"},
		{"absent", "absent: 1 x 0 3 x 6 0 other", "1 have not come"},
		{"size", "", "with the same id"},
		{"twice", "", "two ranks 0"},
	} {
		begun := time.Now()
		r := intercepted(t, m, func(o *intercept.Options) { o.Limit = 3 * time.Second }, wrong, c.fault)
		r.want(t, "")
		if said := strings.TrimSpace(r.out); c.out != "" && said != c.out {
			t.Errorf("%s ended as %q and not %q: %v", c.fault, said, c.out, r.warnings)
		}
		if all := strings.Join(r.warnings, "\n"); (c.warning == "") != (all == "") ||
			!strings.Contains(all, c.warning) {
			t.Errorf("%s: the report does not say %q: %s", c.fault, c.warning, all)
		}
		if d := time.Since(begun); d > 20*time.Second {
			t.Errorf("%s took %v", c.fault, d)
		}
	}
}

// TestRecordMode: calls return at once, cost below two microseconds of a processor, and
// are recorded as the virtual clock does but for their times; what no other rank
// calls is reported.
func TestRecordMode(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: programs of several processes")
	}
	m, speed := two(t), example(t, "speed")
	record := func(o *intercept.Options) { o.Clock, o.Prices = collector.Record, nil }
	var ns int
	r := intercepted(t, m, record, speed, "20000")
	r.want(t, "")
	if _, err := fmt.Sscan(r.out, &ns); err != nil || ns >= 2000 {
		t.Errorf("a call takes %s ns: %v", r.out, err)
	}
	if r.Calls != 40000 || len(r.Record.Events[1]) != 20000 {
		t.Errorf("%d calls, %d of rank 1", r.Calls, len(r.Record.Events[1]))
	}
	r = intercepted(t, m, record, example(t, "events"))
	r.want(t, "400\n") // cudaErrorInvalidResourceHandle
	table := example(t, "table")
	a, b := intercepted(t, m, record, table, "fork"), intercepted(t, m, nil, table, "fork")
	if x, y := shape(t, a), shape(t, b); x != y {
		t.Errorf("recorded as\n%.2000s\nand under the virtual clock as\n%.2000s", x, y)
	}
	r = intercepted(t, m, record, example(t, "wrong"), "count")
	if !strings.Contains(strings.Join(r.warnings, "\n"), "1000 elements") {
		t.Errorf("the report of different counts: %v", r.warnings)
	}
}

// shape is a record without times and waits.
func shape(t *testing.T, r outcome) string {
	var b bytes.Buffer
	if err := r.Record.Write(&b); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if _, sync := v["sync"]; sync || v["record"] != nil {
			continue
		}
		for _, name := range []string{"hostPs", "clock", "group", "thread", "stream"} {
			delete(v, name)
		}
		text, _ := json.Marshal(v)
		out.Write(append(text, '\n'))
	}
	return out.String()
}

// TestMeasuredAndPaced: the same program ends under both clocks, and takes at least
// what the cluster does.
func TestMeasuredAndPaced(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates all sizes; without -short")
	}
	m, table := two(t), example(t, "table")
	base := intercepted(t, m, nil, table)
	for _, clock := range []collector.Clock{collector.Measured, collector.Paced} {
		r := intercepted(t, m, func(o *intercept.Options) { o.Clock = clock }, table)
		r.want(t, "")
		if r.Elapsed < base.Elapsed {
			t.Errorf("%v: %v, and %v without the host's time", clock, r.Elapsed, base.Elapsed)
		}
	}
}

// realDevice builds a program with a GPU of threads (gpu.c), whose libraries it loads as a
// program on a real GPU loads CUDA's, and returns what has it run on 4 GPUs of a node.
func realDevice(t testing.TB) (string, func(o *intercept.Options)) {
	t.Helper()
	dir := libs(t)
	built.mu.Lock()
	defer built.mu.Unlock()
	gpu, out := filepath.Join(built.dir, "gpu"), filepath.Join(built.dir, "real")
	options := func(o *intercept.Options) {
		o.Devices, o.Data = collector.Real, true
		o.Env = append(o.Env, "LD_LIBRARY_PATH="+gpu, "TOY_GPU="+filepath.Join(gpu, "lock"))
	}
	if built.ready["real"] {
		return out, options
	}
	if err := os.MkdirAll(gpu, 0o755); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(gpu, "empty.c")
	for name, text := range map[string]string{empty: "int toyRuntime;\n", filepath.Join(gpu, "lock"): ""} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	src := func(name string) string { return filepath.Join("testdata", "src", name) }
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", filepath.Join(gpu, "libcuda.so.1"),
			src("gpu.c"), "-lpthread", "-lm"},
		{"-shared", "-fPIC", "-Wl,-soname,libcudart.so.12", "-o", filepath.Join(gpu, "libcudart.so.12"),
			empty, "-Wl,--no-as-needed", "-L" + gpu, "-l:libcuda.so.1"},
		{"-o", out, src("real.c"), "-Wl,--no-as-needed", "-L" + dir, "-l:libnccl.so.2", "-L" + gpu,
			"-l:libcudart.so.12", "-l:libcuda.so.1", "-Wl,-rpath-link," + dir + ":" + gpu, "-lm"},
	} {
		if text, err := exec.Command("cc", append([]string{"-O1", "-Wall"},
			args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	built.ready["real"] = true
	return out, options
}

// TestRealDevices: ranks that are processes on one GPU get what they receive, of all
// operations, types and reductions, in streams, behind events and in graphs, whether
// compute is timed or not.
func TestRealDevices(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: programs of several processes")
	}
	program, options := realDevice(t)
	m := nodes(t, 1)
	for _, x := range []struct {
		clock collector.Clock
		calm  string
	}{{collector.Virtual, "-1"}, {collector.Measured, "-1"},
		{collector.Measured, "0"}} { // 0: hosts run ahead from their first call
		r := intercepted(t, m, func(o *intercept.Options) {
			options(o)
			o.Clock, o.Env = x.clock, append(o.Env, "SIMCCL_CALM="+x.calm)
		}, program, "4")
		r.want(t, "right\n")
		if len(r.warnings) > 0 || r.Procs != 4 {
			t.Errorf("%v: %d processes, %v", x, r.Procs, r.warnings)
		}
	}
}

// TestFirstCallOfAStream: a stream's first call of NCCL comes behind what the stream has to
// do already, under each clock.
func TestFirstCallOfAStream(t *testing.T) {
	program, options := realDevice(t)
	m := nodes(t, 1)
	for _, x := range []struct {
		clock collector.Clock
		calm  string
	}{{collector.Virtual, "-1"}, {collector.Measured, "-1"}, {collector.Measured, "0"}} {
		r := intercepted(t, m, func(o *intercept.Options) {
			options(o)
			o.Clock, o.Env = x.clock, append(o.Env, "SIMCCL_CALM="+x.calm)
		}, program, "4", "fresh")
		r.want(t, "")
	}
}

// TestRealTimes: steps of kernels that take 14 ms take about that on the clock of the
// cluster, though four ranks share the GPU, and the record has the kernels.
func TestRealTimes(t *testing.T) {
	program, options := realDevice(t)
	const step, slack = 14e6, 20 // ns; the machine may be as many times slower
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) { options(o); o.Clock = collector.Measured },
		program, "4", "buckets")
	r.want(t, "")
	best := math.Inf(1)
	for line := range strings.Lines(r.out) {
		var ms float64
		if _, err := fmt.Sscan(line, &ms); err != nil || ms*1e6 < step*0.95 {
			t.Errorf("a step of 14 ms takes %s", line)
		}
		best = min(best, ms*1e6)
	}
	if best > step*slack {
		t.Errorf("no step of 14 ms takes less than %.0f ns", best)
	}
	for rank := range 4 {
		work, timed := 0.0, 0
		for _, e := range r.Record.Events[rank] {
			work += float64(e.Time) / 1000
			if e.Timed {
				timed++
			}
		}
		if work < 3*step*0.95 || (timed != 4) != (rank != 0) {
			t.Errorf("rank %d: kernels of %.0f ns, %d timed events", rank, work, timed)
		}
	}
	p, at := r.Record.Timed()
	res, err := nodes(t, 1).Run(context.Background(), p, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(at[0]) != 3 || len(at[1]) != 0 {
		t.Fatalf("times between events that were asked for: %v", at)
	}
	ends, fast := res.Spans[0], math.Inf(1)
	for _, x := range at[0] {
		d := float64(ends[x[1]].End-ends[x[0]].End) / 1000
		fast = min(fast, d)
		if d < step*0.95 {
			t.Errorf("a step of 14 ms takes %.0f ns in the job", d)
		}
	}
	if fast > step*slack {
		t.Errorf("no step of 14 ms takes less than %.0f ns in the job", fast)
	}
}

// ran is when a kernel of the substitute for a GPU ran, in seconds.
type ran struct {
	pid        int
	begin, end float64
}

// kernelsOf runs a program of four ranks that share a GPU, and returns when its kernels ran;
// those of two ranks never do at once.
func kernelsOf(t *testing.T, kind, calm string) (outcome, []ran) {
	program, options := realDevice(t)
	log := filepath.Join(t.TempDir(), "kernels")
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) {
		options(o)
		o.Clock = collector.Measured
		o.Env = append(o.Env, "TOY_LOG="+log, "TOY_LATE=700", "SIMCCL_CALM="+calm)
	}, program, "4", kind)
	r.want(t, "")
	if len(r.warnings) > 0 {
		t.Errorf("%s: %v", kind, r.warnings)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var list, waits []ran
	for line := range strings.Lines(string(data)) {
		var k ran
		var what string
		if _, err := fmt.Sscan(line, &k.pid, &k.begin, &k.end, &what); err != nil {
			t.Fatal(err)
		}
		if what == "wait" {
			waits = append(waits, k)
		} else {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b ran) int { return cmp.Compare(a.begin, b.begin) })
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.pid != b.pid && b.begin < a.end {
			t.Errorf("%s: kernels of processes %d and %d ran at the same time", kind, a.pid, b.pid)
		}
	}
	// A wait for an event keeps its process in the GPU's time slices: none is there for all of a kernel of
	// another process.
	for _, w := range waits {
		beside := 0
		for _, k := range list {
			if k.pid != w.pid && k.begin > w.begin && k.end < w.end {
				beside++
			}
		}
		if beside > 0 {
			t.Errorf("%s: process %d waited for an event for %.1f ms, beside %d kernels of others", kind,
				w.pid, 1e3*(w.end-w.begin), beside)
		}
	}
	return r, list
}

// TestAlone: where compute is timed, no kernels of two ranks run on a GPU at once, also where
// hosts run ahead, and a rank whose host is slower than its kernels is not treated as one whose
// kernels are slow: the GPU's time is that of the kernels, though they are launched 2 ms apart.
func TestAlone(t *testing.T) {
	if _, list := kernelsOf(t, "buckets", "0"); len(list) != 4*(3*13+150) {
		t.Errorf("%d kernels where hosts run ahead", len(list))
	}
	// Stages that send to each other are not held at every call: what is behind calls waits for its turn.
	if _, list := kernelsOf(t, "pipeline", "0"); len(list) != 4*3*(12*31+1) {
		t.Errorf("%d kernels of a pipeline", len(list))
	}
	r, list := kernelsOf(t, "gaps", "-1")
	const kernels, steps, ranks, gap = 10, 4, 4, 2e-3
	took := map[int]float64{} // by process
	for _, k := range list {
		took[k.pid] += k.end - k.begin
	}
	if len(list) != (kernels*steps+1)*ranks || len(took) != ranks {
		t.Fatalf("%d kernels of %d processes", len(list), len(took))
	}
	all, most := 0.0, 0.0
	for _, s := range took { //lint:sorted a sum
		all += s
	}
	for _, events := range r.Record.Events[:ranks] {
		for _, e := range events {
			most += float64(e.Time) / 1e12
		}
	}
	// Without a gate the idle time between kernels would be theirs, too.
	if idle := gap * (kernels - 1) * steps * ranks; most < all*0.9 || most > all+idle/2 {
		t.Errorf("kernels of %.4f s are measured as %.4f s; the host was idle for %.4f s between them", all,
			most, idle)
	}
}

// TestMixed: what hosts may do in random orders, with and without calls that they are held at.
func TestMixed(t *testing.T) {
	for i, calm := range []string{"0", "60"} {
		kernelsOf(t, "m"+strconv.Itoa(i), calm)
	}
}

// TestAstray: kernels that begin when others have the GPU, behind an event that is not known and
// longer than is waited for, are noticed: hosts are held at their calls from there on, and the report says
// so.
func TestAstray(t *testing.T) {
	program, options := realDevice(t)
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) {
		options(o)
		o.Clock, o.Env = collector.Measured, append(o.Env, "TOY_LATE=150000", "SIMCCL_CALM=0")
	}, program, "4", "driver")
	r.want(t, "")
	if !strings.Contains(strings.Join(r.warnings, "\n"), "ran while others had its GPU") {
		t.Errorf("kernels out of turn were not noticed: %q", r.warnings)
	}
}

// TestManyRanks: 64 ranks, processes on one GPU, come to the end with right data, whether compute
// is timed (each has the GPU in turns) or not.
func TestManyRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("64 processes; without -short")
	}
	program, options := realDevice(t)
	for _, clock := range []collector.Clock{collector.Virtual, collector.Measured} {
		r := intercepted(t, nodes(t, 8), func(o *intercept.Options) { options(o); o.Clock = clock }, program,
			"64", "once")
		r.want(t, "")
		// On a busy machine a rank may launch behind its turn, which is said and changes no data.
		r.warnings = slices.DeleteFunc(r.warnings, func(w string) bool {
			return clock == collector.Measured && strings.Contains(w, "ran while others had its GPU")
		})
		if len(r.warnings) > 0 || r.Procs != 64 || r.Calls != 128 {
			t.Errorf("%v: %d processes, %d calls, %v", clock, r.Procs, r.Calls, r.warnings)
		}
	}
}

// TestLoadedLate: CUDA loads a kernel when it is launched first, waits for all streams, and
// answers no thread meanwhile: a host that runs ahead of its calls waits for them before.
func TestLoadedLate(t *testing.T) {
	program, options := realDevice(t)
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) { options(o); o.Clock = collector.Measured },
		program, "4", "lazy")
	r.want(t, "")
	if len(r.warnings) > 0 || r.Calls != 4*14 {
		t.Errorf("%d calls, %v", r.Calls, r.warnings)
	}
}

// TestRefusedAhead: hosts that run ahead do not wait for what the collector says to a call. That
// the ranks call different counts is returned by a later call, on all ranks, and streams go on.
func TestRefusedAhead(t *testing.T) {
	program, options := realDevice(t)
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) {
		options(o)
		o.Clock, o.Limit, o.Env = collector.Measured, 20*time.Second, append(o.Env, "SIMCCL_CALM=0")
	}, program, "4", "unlike")
	r.want(t, "")
	if n := strings.Count(r.out, ": 5 in time\n"); n != 4 || !strings.Contains(strings.Join(r.warnings, "\n"),
		"elements of type 7") {
		t.Errorf("%d of 4 ranks learned of it: %q %q", n, r.out, r.warnings)
	}
}

// TestDriverStreams: a stream that the program destroys by the driver's function, which it has looked up
// itself, is not asked about any more, as that would end the program.
func TestDriverStreams(t *testing.T) {
	program, options := realDevice(t)
	for _, clock := range []collector.Clock{collector.Virtual, collector.Measured} {
		r := intercepted(t, nodes(t, 1), func(o *intercept.Options) { options(o); o.Clock = clock }, program,
			"2", "streams")
		r.want(t, "")
		if r.Calls != 20 {
			t.Errorf("%v: %d calls of 20: %q", clock, r.Calls, r.warnings)
		}
	}
}

// TestDestroyedAhead: what a host that runs ahead asks of a communicator comes behind the calls
// that the collector has not seen yet.
func TestDestroyedAhead(t *testing.T) {
	program, options := realDevice(t)
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) {
		options(o)
		o.Clock, o.Limit, o.Env = collector.Measured, 20*time.Second, append(o.Env, "SIMCCL_CALM=0")
	}, program, "4", "end")
	r.want(t, "")
	if want := int64(4 * 301); int64(r.Calls) != want {
		t.Errorf("%d calls of %d", r.Calls, want)
	}
}

// TestKilled: of a program that is killed the status says so, and what it called until then is
// recorded, under each clock; there are reports meanwhile.
func TestKilled(t *testing.T) {
	for _, clock := range []collector.Clock{collector.Record, collector.Virtual} {
		reports := 0
		r := intercepted(t, two(t), func(o *intercept.Options) {
			o.Clock, o.Every = clock, 20*time.Millisecond
			o.Reports = func(p intercept.Progress) {
				if p.Procs == 1 && (p.Calls == 200 || clock == collector.Record) {
					reports++
				}
			}
		}, "sh", "-c", example(t, "speed")+" 100; sleep 0.5; kill -9 $$")
		if r.Exit != 128+9 || r.Calls != 200 || len(r.Record.Events[1]) < 100 || reports == 0 {
			t.Errorf("%v: ended with %d after %d calls, %d reports: %v", clock, r.Exit, r.Calls, reports,
				r.warnings)
		}
	}
}

// TestNoMover: without the process that moves data every rank gets an error that says so,
// and none hangs.
func TestNoMover(t *testing.T) {
	program, options := realDevice(t)
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) {
		options(o)
		o.Env = slices.DeleteFunc(o.Env, func(kv string) bool {
			return strings.HasPrefix(kv, "LD_LIBRARY_PATH=")
		})
		o.Command = []string{"env", "LD_LIBRARY_PATH=" + filepath.Join(built.dir, "gpu"), program, "2"}
	}, program)
	if r.Exit == 0 || !strings.Contains(strings.Join(r.warnings, "\n"), "libcuda.so.1 is not there") {
		t.Errorf("ended with %d: %v", r.Exit, r.warnings)
	}
}

// TestOtherHost: a process of the program on another host, where the collector is not, gets
// an error that says so.
func TestOtherHost(t *testing.T) {
	r := intercepted(t, two(t), nil, "env", "SIMCCL_INTERCEPT_HOST=elsewhere",
		"SIMCCL_INTERCEPT=/nonexistent", example(t, "speed"), "1")
	if r.Exit == 0 || !strings.Contains(r.errs, "on elsewhere: a job on several hosts is not built") {
		t.Errorf("ended with %d: %s", r.Exit, r.errs)
	}
}

// TestSanitized: the libraries touch no memory that is not theirs, with substitutes and on
// real devices.
func TestSanitized(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the libraries again; without -short")
	}
	program, options := realDevice(t)
	life := example(t, "life")
	dir := t.TempDir()
	cc := filepath.Join(dir, "cc")
	if err := os.WriteFile(cc,
		[]byte("#!/bin/sh\nexec cc -O0 -fsanitize=address,"+
			"undefined -fno-sanitize-recover=undefined \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	probe := filepath.Join(dir, "probe.c")
	if err := os.WriteFile(probe, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(cc, "-o", filepath.Join(dir, "probe"), probe).CombinedOutput(); err != nil {
		t.Skipf("no sanitizers here: %s", text)
	}
	asan, err := exec.Command("cc", "-print-file-name=libasan.so").Output()
	if err != nil || !filepath.IsAbs(strings.TrimSpace(string(asan))) {
		t.Skip("no shared library of the sanitizer here")
	}
	if err := shim.Build(filepath.Join(dir, "simccl-shim"), cc, shim.Core, shim.NCCL, shim.Live, shim.Mover,
		shim.Runtimes[1]); err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(filepath.Join(dir, "simccl-shim", shim.NCCL))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, _ := f.ImportedLibraries()
	if !slices.ContainsFunc(needed, func(n string) bool { return strings.HasPrefix(n, "libasan.") }) {
		t.Fatalf("the libraries are not sanitized: %v", needed)
	}
	sanitized := func(o *intercept.Options) {
		o.Beside = dir
		o.Env = append(o.Env, "ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", "LD_PRELOAD="+
			strings.TrimSpace(string(asan)))
	}
	for _, program := range []string{life, example(t, "refused")} {
		r := intercepted(t, two(t), func(o *intercept.Options) { o.Data = true; sanitized(o) }, program)
		r.want(t, "right\n")
	}
	r := intercepted(t, nodes(t, 1), func(o *intercept.Options) { options(o); sanitized(o) }, program, "2")
	r.want(t, "right\n")
}

// TestCollectorKilled: a program whose collector is killed ends, with an error.
func TestCollectorKilled(t *testing.T) {
	dir := libs(t)
	wrong := example(t, "wrong")
	at, err := os.MkdirTemp("", "simccl-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(at)
	l, err := net.Listen("unix", filepath.Join(at, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	core := collector.New(context.Background(), collector.Settings{Clock: collector.Virtual,
		Devices: collector.Pretend, GPUs: 4, SM: 90, Memory: 1 << 30})
	cut := &cutting{Listener: l}
	go core.Serve(cut)
	c := exec.Command(wrong, "collector")
	c.Env = append(os.Environ(), "SIMCCL_INTERCEPT="+at, "LD_LIBRARY_PATH="+dir)
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for core.Calls() < 4 {
		time.Sleep(time.Millisecond)
	}
	cut.cut()
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%v: %s", err, out.String())
		}
	case <-time.After(20 * time.Second):
		c.Process.Kill()
		t.Fatal("the program hangs without its collector")
	}
	if out.String() != "collector: 4 x 6 0 other\n" {
		t.Errorf("the program printed %q", out.String())
	}
}

// cutting is a listener whose connections can be cut, as by the end of the process.
type cutting struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cutting) cut() {
	c.Listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}
