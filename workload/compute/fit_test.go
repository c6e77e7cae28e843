package compute

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/workload"
)

func measured(t *testing.T) []Row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(golden.Root(t), "testdata", "measured", "h200x1", "compute.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Rows(data, "compute.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestClassIsTheFit: the H200's class is what calibrate compute makes of the measurement.
func TestClassIsTheFit(t *testing.T) {
	c, err := Fit(measured(t), "")
	if err != nil {
		t.Fatal(err)
	}
	known, _ := Find("H200")
	for name, p := range c.Products {
		k := known.Products[name]
		k.Cast = 0 // operands are measured in their precision
		if k != p {
			t.Errorf("%s: %+v, fitted %+v", name, k, p)
		}
	}
	if known.Forward != c.Forward || known.Backward != c.Backward || known.Memory != c.Memory ||
		known.Kernel != c.Kernel || known.Decode != c.Decode || known.Sustained != c.Sustained {
		t.Errorf("%+v, fitted %+v", known, c)
	}
}

// TestHeldOut: fitted on every second kernel, a class misses the others by no more than 8 % on average.
func TestHeldOut(t *testing.T) {
	rows := measured(t)
	var half, other []Row
	for i := range rows {
		switch {
		case rows[i].Kind == "machine":
			half = append(half, rows[i])
		case i%2 == 0:
			half = append(half, rows[i])
		default:
			other = append(other, rows[i])
		}
	}
	c, err := Fit(half, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Residuals(other) {
		if r.Mean > 0.08 || r.Kernels < 20 {
			t.Errorf("%+v", r)
		}
	}
}

// TestClasses: each GPU has a class whose rates are numbers, and what computes more takes longer.
func TestClasses(t *testing.T) {
	for _, name := range append(Names(), "V100", "L4", "RTX 4090", "H100 PCIe", "A800") {
		c, ok := Find(name)
		if !ok || c.Uncertainty <= 0 || c.Source == "" {
			t.Fatalf("%s: %+v", name, c)
		}
		for _, p := range []workload.Precision{workload.BF16, workload.FP8, workload.MXFP8, workload.NVFP4,
			workload.TF32} {
			last := int64(0)
			for _, m := range []int64{1, 1 << 8, 1 << 12, 1 << 16} {
				at := int64(c.Product(&workload.Shape{Op: workload.ProductShape, M: m, N: 4096, K: 4096,
					Count:     1,
					Precision: p}, true))
				if at < last || at <= 0 || at > 1e15 {
					t.Errorf("%s %v: %d rows take %d ps, fewer %d", name, p, m, at, last)
				}
				last = at
			}
		}
	}
}

// TestFasterGPU: long products of H100 and H200 take the same, being of one chip, and B200's less.
func TestFasterGPU(t *testing.T) {
	at := func(name string) float64 {
		c, _ := Find(name)
		return float64(c.Product(&workload.Shape{Op: workload.ProductShape, M: 8192, N: 8192, K: 8192,
			Count: 1},
			true))
	}
	if math.Abs(at("H100")/at("H200")-1) > 1e-9 || at("B200") > at("H200")/1.4 || at("A100") < 2*at("H100") {
		t.Error(at("A100"), at("H100"), at("H200"), at("B200"))
	}
}

// TestParseErrors: a file of a class that cannot be has its place and what to write.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"simccl compute class": 2, "name": "h200"}`:                                           "x.json:1:26: version 2; write 1",
		`{"simccl compute class": 1, "name": "tpu"}`:                                            `no GPU is called "tpu"`,
		`{"simccl compute class": 1, "name": "h200", "sustained": 3}`:                           "write a number from 0 to 1",
		`{"simccl compute class": 1, "name": "h200", "like": "h201"}`:                           `no class is called "h201"`,
		`{"simccl compute class": 1, "name": "h200", "tile": 3}`:                                "unknown member",
		`{"simccl compute class": 1, "name": "h200"`:                                            "ends too early",
		`{"simccl compute class": 1, "name": "h200", "products": {"bf16": {"efficiency": -1}}}`: "a rate that no GPU has",
	} {
		if _, err := Parse([]byte(text), "x.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := Fit([]Row{{Kind: "machine", GPU: "TPU", SMs: 3}}, ""); err == nil {
		t.Error("the class of a GPU that is not known")
	}
}

// FuzzParse: no file of a class makes Parse panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"simccl compute class": 1, "name": "h200", "products": {"bf16": {"efficiency": 0.5}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := Parse(data, "x"); err == nil {
			c.Product(&workload.Shape{Op: workload.ProductShape, M: 9, N: 9, K: 9}, true)
		}
	})
}

// TestHeldOutLayers: fitted without one kind of layer at a time, a class misses layers of decoding of that
// kind by no more than 12 % on average, and no layer by more than 20.
func TestHeldOutLayers(t *testing.T) {
	rows := measured(t)
	sum, n := 0.0, 0.0
	for _, d := range []int64{1024, 2048, 3072, 16384} {
		var others []Row
		for i := range rows {
			if rows[i].D != d {
				others = append(others, rows[i])
			}
		}
		c, err := Fit(others, "")
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			works, us := rows[i].layer(), 0.0
			if rows[i].D != d || works == nil {
				continue
			}
			for k := range works {
				at, _ := c.Time(&works[k])
				us += at.Micros()
			}
			miss := us/rows[i].LayerUs - 1
			t.Logf("%d values, %d requests of %d tokens, tp %d: %.1f us, measured %.1f: %+.1f %%", d,
				rows[i].Batch, rows[i].Context, rows[i].TP, us, rows[i].LayerUs, 100*miss)
			if sum, n = sum+math.Abs(miss), n+1; math.Abs(miss) > 0.2 {
				t.Errorf("%+v: %.1f us", rows[i], us)
			}
		}
	}
	if n != 16 || sum/n > 0.12 {
		t.Errorf("%.0f layers missed by %.1f %% on average", n, 100*sum/n)
	}
}
