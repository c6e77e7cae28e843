package bench

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/measure"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/units"
)

// recorded replaces GPUs that take the time that was measured once: a
// backend whose times are those of a file of testdata/measured.
type recorded struct {
	times map[coll.Func][]calibrate.Sample // of ascending sizes
	n     int
	asked int
}

func (r *recorded) About() bench.About {
	a := bench.About{Describe: "recorded", Threads: r.n}
	for i := range r.n {
		a.Devices = append(a.Devices, nccltests.Device{Rank: i, Host: "recorded", Device: i,
			Name: "NVIDIA H200"})
	}
	return a
}
func (r *recorded) Close() error { return nil }

// Measure interpolates between the recorded sizes; three passes differ by 2 %.
func (r *recorded) Measure(_ context.Context, op *bench.Op, _ bench.Options) (m bench.Measurement,
	err error) {
	list := r.times[op.Func]
	if len(list) == 0 {
		return m, fmt.Errorf("%v was not recorded", op.Func)
	}
	size := int64(op.Sizes.Bytes(op.Type))
	i := 1
	for i < len(list)-1 && list[i].Bytes < size {
		i++
	}
	a, b := list[i-1], list[i]
	at := (math.Log(float64(size)) - math.Log(float64(a.Bytes))) / (math.Log(float64(b.Bytes)) -
		math.Log(float64(a.Bytes)))
	us := math.Exp(math.Log(a.Us) + at*(math.Log(b.Us)-math.Log(a.Us)))
	r.asked++
	m.Time, m.Checked, m.Shape = units.FromMicros(us*(1+0.01*float64(r.asked%3))), true, "nccl"
	return m, nil
}

// record is what opens recorded times in place of GPUs.
func record(t *testing.T, files ...string) Opener {
	t.Helper()
	runs, _, err := calibrate.Read(os.DirFS(golden.Root(t, "testdata", "measured", "h200x4", "procs")))
	if err != nil {
		t.Fatal(err)
	}
	r := &recorded{times: map[coll.Func][]calibrate.Sample{}, n: 4}
	for _, run := range runs {
		for _, f := range files {
			if run.File == f {
				for _, s := range run.Samples {
					r.times[s.Op.Func] = append(r.times[s.Op.Func], s)
				}
			}
		}
	}
	return inPlaceOfGPUs(r)
}

// inPlaceOfGPUs opens a backend in place of GPUs.
func inPlaceOfGPUs(b bench.Backend) Opener {
	return func(
		context.Context, *bench.Spec, *team.Team, bench.DeviceConfig, bench.NewModel,
	) (bench.Backend, error) {
		return b, nil
	}
}

// TestCalibrateOnRecordedTimes goes the whole way of calibrate but for the GPUs:
// sets are measured on a machine that answers with recorded times, a class is
// fitted, and it predicts what the same machine answers later.
func TestCalibrateOnRecordedTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("fits hundreds of operations")
	}
	first, later := t.TempDir(), t.TempDir()
	measureRecorded(t, first, "default", "pb_default_4.txt")
	measureRecorded(t, first, "ring-LL", "pb_Ring_LL_4.txt", "pb_Ringx_LL_4.txt")
	measureRecorded(t, later, "default", "pb_default_4.txt")

	topo := golden.Root(t, "testdata", "topos", "h200x4-4.xml")
	class := filepath.Join(t.TempDir(), "class.json")
	out := simccl(t, "fit", first, "--topo", topo, "--out", class)
	for _, want := range []string{
		"# default.all_reduce.json: 4 ranks, 28 times; the file says NCCL_NVLS_ENABLE=0",
		"# ring-LL.all_gather.json: 4 ranks", "the file says NCCL_ALGO=Ring NCCL_NVLS_ENABLE=0 NCCL_PROTO=LL",
		"held out"} {
		if !strings.Contains(out, want) {
			t.Errorf("fit prints no %q:\n%s", want, out)
		}
	}
	text, err := os.ReadFile(class)
	if err != nil || !bytes.Contains(text, []byte(`"machine": "4 x NVIDIA H200, 20`)) {
		t.Errorf("the class does not tell its machine: %v\n%s", err, text)
	}
	simccl(t, "check", later, "--topo", topo, "--machine-class", class, "--within", "0.06")
}

// measureRecorded measures a set as its processes do, with what files recorded
// in place of GPUs.
func measureRecorded(t *testing.T, dir, name string, files ...string) {
	t.Helper()
	list, err := measure.Pick([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	s.Ops = []coll.Func{coll.AllReduce, coll.AllGather}
	a := &cli.App{Process: process.Process{Out: os.Stdout, Err: os.Stderr,
		Environ: append([]string{"NCCL_NVLS_ENABLE=0"}, s.Env...)}}
	if err := measureSet(t.Context(), a, &s, team.Alone(0), "", dir, record(t, files...)); err != nil {
		t.Fatal(err)
	}
}

// simccl runs a command line that must succeed and returns what it prints.
func simccl(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	c := Calibrate(&cli.App{Process: process.Process{Out: &out, Err: &errs}})
	c.SetArgs(args)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("calibrate %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// TestWrongValuesEndCalibration: a time of wrong results is no time.
func TestWrongValuesEndCalibration(t *testing.T) {
	gpus := inPlaceOfGPUs(wrong{&recorded{n: 4}})
	s := measure.Sets()[0]
	a := &cli.App{Process: process.Process{Out: os.Stdout, Err: os.Stderr}}
	err := measureSet(t.Context(), a, &s, team.Alone(0), "", t.TempDir(), gpus)
	if cli.ExitStatus(err) != cli.StatusCheck || !strings.Contains(err.Error(), "element 3") {
		t.Errorf("wrong values: %v, exit status %d", err, cli.ExitStatus(err))
	}
}

type wrong struct{ *recorded }

func (wrong) Measure(context.Context, *bench.Op, bench.Options) (m bench.Measurement, err error) {
	m.Time, m.Wrong, m.Checked, m.First = units.Microsecond, 1, true, "rank 1: element 3"
	return m, nil
}
