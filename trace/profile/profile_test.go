package profile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// play records operations with random overlapping steps and returns the sum
// over ranks of their times.
func play(sink trace.Sink, seed uint64, ranks, steps int, slow units.Time) (total units.Time) {
	rng := rand.New(rand.NewPCG(seed, 1))
	rec := nccl.New(sink, nccl.Options{Detail: nccl.DetailStep})
	for r := range ranks {
		rec.AddRank(nccl.Rank{Rank: r, GPU: r, Host: "node0"})
		start := units.Time(rng.Int64N(1000))
		end := start + units.Time(1e6+rng.Int64N(1e6)) + slow
		for c := range 2 {
			rec.Kernel(r, 0, c, start+1000, end-1000, new(nccl.Terms))
		}
		for s := range steps {
			from := start + units.Time(rng.Int64N(int64(end-start)))
			to := min(from+units.Time(rng.Int64N(400000)), end)
			rec.Steps(&nccl.Step{Rank: r, Channel: s % 2, Dir: nccl.Send, Peer: (r + 1) % ranks,
				Step: int64(s), Bytes: 100,
				Transport: "P2P/CUMEM", Link: "GPU→NVS", Chunk: -1}, 0, nccl.Phase{Wait: nccl.SendWait,
				Start: from, End: to})
		}
		rec.Collective(nccl.Operation{Rank: r, Start: start, End: end}, nccl.Coll{Func: "AllReduce",
			Algorithm: "RING", Protocol: "LL", Bytes: 4096})
		total += end - start
	}
	rec.Finish(0)
	return total
}

func parse(t interface{ Fatal(...any) }, b []byte) *profile.Profile {
	p, err := profile.ParseData(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The samples' times add up to the ranks' operation times, to the nanosecond.
func TestTotalIsTheTimeOfTheOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w := New(&out, Options{})
		want := play(w, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 4).Draw(t, "ranks"),
			rapid.IntRange(0, 30).Draw(t, "steps"), 0)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		p := parse(t, out.Bytes())
		got := int64(0)
		for _, s := range p.Sample {
			if s.Value[0] < 0 {
				t.Fatalf("negative time: %v", s)
			}
			got += s.Value[0]
		}
		if got != int64(want/units.Nanosecond) {
			t.Fatalf("samples add up to %d ns, operations last %d ns", got, want/units.Nanosecond)
		}
	})
}

// A receive that the proxy has posted counts where nothing else is active, and
// only there.
func TestPostedReceivesAreBehind(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, Options{})
	rec := nccl.New(w, nccl.Options{Detail: nccl.DetailStep})
	s := nccl.Step{Peer: 1, Transport: "NET/IB", Dir: nccl.Recv, Chunk: -1}
	rec.Steps(&s, 0, nccl.Phase{Wait: nccl.RecvWait, Start: 0, End: 9000 * units.Nanosecond})
	s.Transport, s.Dir = "P2P/CUMEM", nccl.Send
	rec.Steps(&s, 0, nccl.Phase{Wait: nccl.SendWait, Start: 2000 * units.Nanosecond,
		End: 6000 * units.Nanosecond})
	rec.Collective(nccl.Operation{End: 10000 * units.Nanosecond}, nccl.Coll{Func: "AllReduce"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, s := range parse(t, out.Bytes()).Sample {
		got[s.Location[0].Line[0].Function.Name] += s.Value[0]
	}
	if got["RecvWait"] != 5000 || got["SendWait"] != 4000 || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestBytesAndSteps(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, Options{})
	play(w, 7, 2, 50, 0)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var b, n int64
	for _, s := range parse(t, out.Bytes()).Sample {
		b, n = b+s.Value[1], n+s.Value[2]
	}
	if n == 0 || b != 100*n {
		t.Errorf("%d bytes in %d steps of 100", b, n)
	}
}

// go tool pprof reads it: by rank, by link, and as a difference of two runs.
func TestPprofReadsIt(t *testing.T) {
	if testing.Short() {
		t.Skip("starts go tool pprof")
	}
	dir := t.TempDir()
	file := func(name string, slow units.Time) string {
		w, err := createFile(filepath.Join(dir, name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		play(w, 3, 2, 20, slow)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	sim, real := file("sim.pb.gz", 0), file("real.pb.gz", 500*units.Microsecond)
	pprof := func(args ...string) string {
		cmd := exec.Command("go", append([]string{"tool", "pprof"}, args...)...)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("pprof %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	for _, c := range []struct {
		want []string
		args []string
	}{
		{[]string{"SendWait", "AllReduce (RING/LL)"}, []string{"-top", "-cum", sim}},
		{[]string{"rank 0", "rank 1", "Total samples = 2820ns"}, []string{"-top", "-cum", "-tagroot=rank",
			sim}},
		{[]string{"GPU→NVS"}, []string{"-top", "-files", sim}},
		{[]string{"500us 17730.50%  rank 0", "500us 17730.50%  rank 1", "accounting for 1000us"},
			[]string{"-top", "-diff_base", sim, real}},
	} {
		out := pprof(c.args...)
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("pprof %v lacks %q:\n%s", c.args[:len(c.args)-1], w, out)
			}
		}
	}
}

func TestSameInputSameBytes(t *testing.T) {
	var a, b bytes.Buffer
	for _, out := range []*bytes.Buffer{&a, &b} {
		w := New(out, Options{})
		play(w, 11, 3, 40, 0)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two runs give two profiles")
	}
}

// TestCancelledProfileEnds: at whatever point it is cancelled, Close returns the
// reason, and the old file stays.
func TestCancelledProfileEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.pb.gz")
	why := errors.New("cancelled")
	write := func(end int) (polls int, err error) {
		w, err := createFile(path, Options{Cancelled: func() error {
			if polls++; end > 0 && polls >= end {
				return why
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		play(w, 1, 3, pollEvery, 0)
		err = w.Close()
		return polls, err
	}
	whole, err := write(0)
	if err != nil || whole < 3 {
		t.Fatalf("polled %d times: %v", whole, err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for end := 1; end <= whole; end++ {
		if _, err := write(end); !errors.Is(err, why) {
			t.Errorf("cancelled at poll %d of %d: %v", end, whole, err)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, old) {
		t.Errorf("the old file changed: %v", err)
	}
}

// createFile is trace/file's Profile, which imports this package.
func createFile(path string, opt Options) (*Writer, error) {
	file, err := newfile.Create(path)
	if err != nil {
		return nil, err
	}
	return To(file, path, opt), nil
}

// TestDurationIsInNanoseconds: until the last operation of any rank ends.
func TestDurationIsInNanoseconds(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, Options{})
	rec := nccl.New(w, nccl.Options{Detail: nccl.DetailStep})
	for r, end := range []units.Time{7_000_000, 9_000_000} {
		rec.AddRank(nccl.Rank{Rank: r, GPU: r, Host: "node0"})
		rec.Collective(nccl.Operation{Rank: r, Start: 2_000_000, End: end}, nccl.Coll{Func: "AllReduce",
			Algorithm: "RING", Protocol: "LL", Bytes: 4096})
	}
	rec.Finish(0)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if p := parse(t, out.Bytes()); p.DurationNanos != 9000 {
		t.Errorf("9 us are %d ns", p.DurationNanos)
	}
}

// TestStepsOfAnOperation: an operation's time is divided among what is active during it, not what begins
// where it ends or has ended where it begins.
func TestStepsOfAnOperation(t *testing.T) {
	r := &rank{ops: []operation{{start: 10, end: 20}, {start: 20, end: 30}},
		spans: []span{{0, 10, 3}, {10, 20, 1}, {10, 18, 2}, {20, 30, 4}}}
	shares, time, err := r.attribute(func(int32) bool { return false }, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range shares {
		got = append(got, fmt.Sprintf("%d by %d: %d", s.op, s.stack, int64(time[s])))
	}
	if s := strings.Join(got, ", "); s != "0 by 1: 6, 0 by 2: 4, 1 by 4: 10" {
		t.Error(s)
	}
}
