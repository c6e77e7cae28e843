package compare

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// wires writes network sends of growing size, whose time is cost; reported says
// whether the trace says what it consists of.
func wires(t *testing.T, reported bool, cost func(i int, bytes int64) nccl.Terms) *strings.Reader {
	t.Helper()
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{})
	rec := nccl.New(w, nccl.Options{Detail: nccl.DetailStep})
	at := units.Time(0)
	for i := range 12 {
		n := int64(1+i%3) * 100_000
		terms := cost(i, n)
		p := nccl.Phase{Wait: nccl.SendWait, Start: at, End: at + terms.Sum()}
		if reported {
			p.Terms = terms
		}
		rec.Steps(&nccl.Step{Peer: 1, Step: int64(i), Bytes: units.Bytes(n), Transport: "NET/IB", Chunk: -1},
			0, p)
		at = p.End
	}
	rec.Finish(at)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(out.String())
}

// model is a network of 50 GB/s, 4 us away.
func model(_ int, bytes int64) (t nccl.Terms) {
	t[nccl.Wire], t[nccl.NIC], t[nccl.Proxy] = 4*us, units.Time(bytes)*20, us/2
	return t
}

func wantParts(t *testing.T, d *Differences, want string) {
	t.Helper()
	var got []string
	for _, p := range d.Terms {
		got = append(got, fmt.Sprintf("%s %t %.1f", p.Term, p.Reported, p.Us))
	}
	if g := strings.Join(got, ", "); g != want {
		t.Errorf("the difference consists of %s, want %s", g, want)
	}
}

// Two traces that both say what their time consists of: term by term.
func TestTermsOfTwoSimulations(t *testing.T) {
	d, err := Diff(wires(t, true, model), wires(t, true, func(i int, n int64) nccl.Terms {
		c := model(i, n)
		if i == 5 {
			c[nccl.Queue] = 3 * us
		}
		return c
	}), 0, new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, d, "queue true 3.0")
	if d.Cause == nil || d.Cause.Number != 5 || len(d.Cause.Why) != 1 || d.Cause.Why[0].Term != "queue" {
		t.Errorf("first cause %+v", d.Cause)
	}
}

// A measured trace says how long, not of what: from how it goes with the bytes
// the wire must be 2 us longer and the port a quarter slower; what one slice
// takes beyond its like is sharing.
func TestTermsOfAMeasurement(t *testing.T) {
	d, err := Diff(wires(t, true, model), wires(t, false, func(i int, n int64) nccl.Terms {
		c := model(i, n)
		c[nccl.Wire] += 2 * us
		c[nccl.NIC] += units.Time(n) * 5
		if i == 7 {
			c[nccl.Proxy] += 6 * us
		}
		return c
	}), 0, new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, d, "wire false 24.0, nic false 12.0, proxy false 6.0")
	// And from the measurement to the model the same, the other way.
	back, err := Diff(wires(t, false, func(i int, n int64) nccl.Terms {
		c := model(i, n)
		c[nccl.Wire] += 2 * us
		return c
	}), wires(t, true, model), 0, new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	wantParts(t, back, "wire false -24.0")
}

// What the model has no word for is said to be so.
func TestTimeWithoutATerm(t *testing.T) {
	none := func(int, int64) (t nccl.Terms) {
		t[nccl.Wire] = 4 * us
		return t
	}
	d, err := Diff(wires(t, true, none), wires(t, false, func(i int, n int64) nccl.Terms {
		c := none(i, n)
		if i > 3 {
			c[nccl.Wire] += units.Time(i) * us
		}
		return c
	}), 0, new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Terms) != 1 || d.Terms[0].Term != notInModel || d.Terms[0].Reported {
		t.Errorf("the difference consists of %+v", d.Terms)
	}
}

// Whatever two traces hold, the parts of a kind's difference add up to it: of a
// simulation and of what NCCL's profiler reported on four H200, which says nothing
// of terms.
func TestPartsAddUp(t *testing.T) {
	real, err := os.ReadFile("../../testdata/measured/h200x4/bench/real_64M_4.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{})
	rec := nccl.New(w, nccl.Options{Detail: nccl.DetailChannel})
	for r := range 4 {
		for ch := range 24 {
			terms := nccl.Terms{nccl.Data: units.Time(20+r) * us, nccl.Copy: 180 * us,
				nccl.Link: units.Time(90+ch) * us}
			rec.Kernel(r, 0, ch, 10*us, 10*us+terms.Sum(), &terms)
		}
		rec.Collective(nccl.Operation{Rank: r, End: 340 * us, Launch: 10 * us}, nccl.Coll{Func: "AllReduce"})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, swap := range []bool{false, true} {
		a, b := io.Reader(bytes.NewReader(out.Bytes())), io.Reader(bytes.NewReader(real))
		if swap {
			a, b = b, a
		}
		d, err := Diff(a, b, 0, new(trace.Budget))
		if err != nil || len(d.Reasons) != 2 || d.Cause == nil {
			t.Fatal(err, d)
		}
		for _, r := range d.Reasons {
			sum, waits := 0.0, 0.0
			for _, p := range r.Parts {
				sum += p.Us
				if p.Waits && p.Reported {
					waits += p.Us
				}
			}
			if math.Abs(sum-r.DiffUs) > 0.1 {
				t.Errorf("%s %s: the parts are %g us of %g: %+v", r.Cat, r.Name, sum, r.DiffUs, r.Parts)
			}
			// The profiled ranks launched up to 200 us apart: most of the kernels' time
			// is that of waiting for the last.
			if r.Name == "KernelCh" && (!swap && waits < 5000 || swap && waits > -5000) {
				t.Errorf("kernels wait %g us longer for the last of them", waits)
			}
		}
	}
}

// Kernels that begin before the last one wait for it: of two measured kernels
// that is known, though neither says what it consists of.
func TestKernelsWaitForTheLast(t *testing.T) {
	kernels := func(late units.Time, reported bool) *strings.Reader {
		var out bytes.Buffer
		w := chrome.New(&out, chrome.Options{})
		rec := nccl.New(w, nccl.Options{Detail: nccl.DetailChannel})
		for r := range 2 {
			var terms nccl.Terms
			from := us + late*units.Time(r)
			if reported {
				terms[nccl.Copy] = 31*us + late - from
			}
			rec.Kernel(r, 0, 0, from, 31*us+late, &terms)
			rec.Collective(nccl.Operation{Rank: r, End: 32*us + late}, nccl.Coll{Func: "AllReduce"})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return strings.NewReader(out.String())
	}
	d, err := Diff(kernels(0, true), kernels(10*us, false), 0, new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, r := range d.Reasons {
		for _, p := range r.Parts {
			got[r.Name+" "+p.Term] += p.Us
		}
	}
	if math.Abs(got["KernelCh data"]-10) > 0.01 || math.Abs(got["AllReduce launch"]-10) > 0.01 ||
		math.Abs(got["AllReduce kernel"]-10) > 0.01 || len(got) != 3 {
		t.Errorf("%v", got)
	}
}
