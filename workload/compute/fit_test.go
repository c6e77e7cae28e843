package compute

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
)

func TestScratch(t *testing.T) {
	data, err := os.ReadFile("/work/shared/measured/h200x1/compute-2026-11-29.jsonl")
	if err != nil {
		t.Skip(err)
	}
	rows, err := Rows(data, "x")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Fit(rows, "x")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := c.Format()
	fmt.Println(string(text))
	errs := map[string][]float64{}
	for i := range rows {
		r := &rows[i]
		w, ok := r.work()
		if !ok {
			continue
		}
		var us float64
		switch {
		case r.Kind == "gemm":
			us = c.Product(&w.Shape, 2*float64(r.M)*float64(r.N)*float64(r.K) > long).Micros()
			k := fmt.Sprintf("%s %v flops 1e%.0f", r.Kind, w.Shape.Precision, math.Floor(math.Log10(2*float64(r.M)*float64(r.N)*float64(r.K))))
			errs[k] = append(errs[k], math.Abs(us/r.Us-1))
			continue
		case r.Kind == "attn_fwd":
			x, _ := c.Time(&w)
			us = x.Micros()
		default:
			x, _ := c.Time(&w)
			us = x.Micros() + c.attend(&c.Forward, &w.Shape, float64(w.FLOPs)/2.5).Micros()
		}
		k := fmt.Sprintf("%s %d %d", r.Kind, r.HeadDim, r.Seq)
		errs[k] = append(errs[k], math.Abs(us/r.Us-1))
	}
	var keys []string
	for k := range errs {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		e := errs[k]
		slices.Sort(e)
		s := 0.0
		for _, x := range e {
			s += x
		}
		fmt.Printf("%-30s n %d mean %.3f max %.3f\n", k, len(e), s/float64(len(e)), e[len(e)-1])
	}
}
