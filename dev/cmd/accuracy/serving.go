package main

import (
	"context"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/simccl/simccl/scenario"
)

// group is a list of measurements of one source and machine.
type group struct {
	Name, Kind, Mode, Library, Memory string
	Framework, Kernel, DType          string
	Version                           string `json:"framework_version"`
	Hardware                          struct {
		GPU   string
		GPUs  int
		Nodes int
		NIC   string
	}
	Hidden, Experts, EP int
	TopK                int     `json:"top_k"`
	Local               int     `json:"local_experts"`
	Tokens              int     `json:"tokens"`
	Dispatch            float64 `json:"dispatch_us"`
	Combine             float64 `json:"combine_us"`
	SMs                 int     `json:"sms"`
	DispatchRate        float64 `json:"dispatch_GBps"`
	CombineRate         float64 `json:"combine_GBps"`
	Rows                []map[string]any
}

// point is one measured time, or rate, and the Spec that it is of.
type point struct {
	class, key string
	measured   float64 // us; of rates GB/s
	rate       bool
	spec       scenario.Spec
}

func serving() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: serving FILE")
		os.Exit(2)
	}
	if err := runServing(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "serving:", err)
		os.Exit(2)
	}
}

func runServing(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var groups []group
	if err := json.Unmarshal(data, &groups); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	m := machines{}
	errs := map[string]*[2][]float64{}
	left := map[string]int{}
	for i := range groups {
		points := groups[i].points()
		if len(points) == 0 {
			left[groups[i].Kind+" "+groups[i].Library+groups[i].Framework+" "+groups[i].Version]++
		}
		for _, p := range points {
			sim, err := m.simulate(&p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.key, err)
			}
			h := sha1.Sum([]byte(p.key))
			if errs[p.class] == nil {
				errs[p.class] = new([2][]float64)
			}
			half := h[len(h)-1] & 1
			errs[p.class][half] = append(errs[p.class][half], sim/p.measured-1)
		}
	}
	servingPrint(errs, left)
	return nil
}

func servingPrint(errs map[string]*[2][]float64, left map[string]int) {
	fmt.Printf("%-44s %28s   %s\n", "", "fitted to", "not seen")
	for _, class := range sorted(errs) {
		fmt.Printf("%-44s", class)
		over := ""
		for _, half := range errs[class] {
			sum, bias, worst := 0.0, 0.0, 0.0
			for _, e := range half {
				sum, bias, worst = sum+math.Abs(e), bias+e, math.Max(worst, math.Abs(e))
			}
			n := math.Max(1, float64(len(half)))
			fmt.Printf("  %4d rows %5.1f %% (%+5.1f, most %3.0f)", len(half), 100*sum/n, 100*bias/n,
				100*worst)
			if bar := bar(class); sum/n > bar {
				over = fmt.Sprintf(" over %.0f %%", 100*bar)
			}
		}
		fmt.Println(over)
	}
	for _, name := range sorted(left) {
		fmt.Printf("not simulated: %d lists of %s\n", left[name], name)
	}
}

// bar is the mean error that a class is held to: KV caches 10 %, kernels 15 %.
func bar(class string) float64 {
	if strings.HasPrefix(class, scenario.KVCache) {
		return 0.1
	}
	return 0.15
}

func sorted[V any](m map[string]V) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// machines are those that were loaded.
type machines map[string]*scenario.Site

// simulate is the time in us of a point, or its rate.
func (m machines) simulate(p *point) (float64, error) {
	ctx, opt := context.Background(), scenario.Options{}
	node := p.spec.Machine.Nodes[0]
	key := fmt.Sprint(node, p.spec.Machine.GPUs, p.spec.NCCL.Env)
	site := m[key]
	if site == nil {
		var err error
		if site, err = scenario.Load(&p.spec, opt); err != nil {
			return 0, err
		}
		m[key] = site
	}
	if scenario.OfServing(p.spec.Workload.Op) {
		out, err := scenario.ServeOn(ctx, site, p.spec, opt)
		if err != nil {
			return 0, err
		}
		if p.rate {
			return out.GBps, nil
		}
		return out.Us, nil
	}
	out, err := scenario.RunOn(ctx, site, p.spec, opt)
	if err != nil {
		return 0, err
	}
	return out.Rows[0].Out.Time.Micros(), nil
}
