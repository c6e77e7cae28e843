package simccl_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/simccl/simccl"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/validate"
)

// A sweep of two DGX H100, the built-in machine: what
// `simccl run all_reduce --sizes 64K,1M,16M` does.
func Example() {
	spec := simccl.Spec{Workload: simccl.Workload{Op: "all_reduce", Sizes: []string{"64K", "1M", "16M"}}}
	result, err := simccl.Run(context.Background(), spec, simccl.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Machine.Ranks, "ranks, rules of NCCL", result.NCCL)
	for _, row := range result.Rows {
		fmt.Printf("%8d bytes: %s %s, limited by %s: %v\n", row.Bytes, row.Facts.Algo, row.Facts.Proto,
			row.Facts.Limit, row.Out.Time > 0)
	}
	// Output:
	// 16 ranks, rules of NCCL 2.28.9
	//    65536 bytes: TREE LL, limited by node0 GPU0→NVSwitch: true
	//  1048576 bytes: TREE LL128, limited by node0 GPU0→NVSwitch: true
	// 16777216 bytes: NVLS_TREE SIMPLE, limited by node0 GPU0→NVSwitch: true
}

// From a topology file to a decision, a plan, a simulated time and a trace, stage
// by stage: what `simccl run all_reduce --sizes 1M --trace` does.
func Example_stages() {
	c, _ := machine(2)
	p, choice, err := c.Plan(comm.Op{Func: coll.AllReduce, Count: 1 << 18, Type: coll.Float32})
	if err != nil {
		log.Fatal(err)
	}
	x, err := sim.New(sim.Config{Comm: c.Layout, Systems: c.Systems(), Trace: sim.TraceOptions{
		Detail: sim.DetailStep}})
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	sink := chrome.New(&out, chrome.Options{})
	r, err := x.Run(context.Background(), exec.One(p), sink)
	if err != nil {
		log.Fatal(err)
	}
	if err := sink.Close(); err != nil {
		log.Fatal(err)
	}
	report, err := validate.Check(&out)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.NRanks, "ranks,", c.NChannels, "channels:", choice.Algo, choice.Proto, "on",
		p.Split.NChannels, r.Elapsed > 0)
	fmt.Println(report.Flows, "messages,", report.Errors, "errors in the trace")
	// Output:
	// 16 ranks, 16 channels: Tree LL128 on 16 true
	// 1920 messages, 0 errors in the trace
}

// machine makes a communicator of DGX H100s with NCCL_* settings.
func machine(nodes int, settings ...string) (*comm.Comm, *config.Config) {
	spec := simccl.Spec{Machine: simccl.Machine{Nodes: []simccl.Nodes{{Count: nodes}}}}
	site, err := scenario.Load(&spec, simccl.Options{Settings: config.Sources{Flags: settings},
		Warn: func(w error) { log.Print(w) }})
	if err != nil {
		log.Fatal(err) // file:line:column, what is wrong, what to write instead
	}
	return site.Comm, site.Config
}

// Why NCCL chooses what it chooses: the winner, and each rival with its time or
// the rule that switches it off.
func Example_explain() {
	c, cfg := machine(4)
	op := comm.Op{Func: coll.AllReduce, Count: 1 << 18, Type: coll.Float32}
	r, err := explain.New(explain.Input{Comm: c, Op: op, Access: cfg.Topo.Access})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s %s at %d bytes\n", r.Choice.Algo, r.Choice.Proto, r.Size)
	for _, rival := range r.Rivals[:2] {
		fmt.Printf("%s %s is %.1f times as slow\n", rival.Algo, rival.Proto, rival.Slower)
	}
	for _, x := range r.Crossovers[:2] {
		fmt.Printf("up to %d bytes: %s %s\n", x.To, x.Algo, x.Proto)
	}
	// Output:
	// Tree LL128 at 1048576 bytes
	// NVLSTree Simple is 1.4 times as slow
	// Tree Simple is 1.7 times as slow
	// up to 141736 bytes: Tree LL
	// up to 3721768 bytes: Tree LL128
}

// What a setting changes, and why.
func Example_compare() {
	a, cfgA := machine(2)
	b, cfgB := machine(2, "NCCL_ALGO=Ring")
	d, err := explain.Compare(explain.Side{Comm: a, Access: cfgA.Topo.Access},
		explain.Side{Comm: b, Access: cfgB.Topo.Access}, []coll.Func{coll.AllReduce})
	if err != nil {
		log.Fatal(err)
	}
	first := d.Choices[0]
	fmt.Printf("from %d bytes %s becomes %s:\n%s\n", first.From, first.A, first.B, first.Why[0])
	// Output:
	// from 4 bytes Tree LL becomes Ring LL:
	// Tree LL is off in B: NCCL_ALGO=Ring leaves it out; leave NCCL_ALGO unset, or name it there
}

// Many sizes without a trace, each plan proven before it is run.
func Example_sweep() {
	c, _ := machine(1)
	x, err := sim.New(sim.Config{Comm: c.Layout, Systems: c.Systems(), Launch: sim.Graph})
	if err != nil {
		log.Fatal(err)
	}
	last := 0.0
	for bytes := int64(1 << 10); bytes <= 1<<26; bytes *= 16 {
		p, choice, err := c.Plan(comm.Op{Func: coll.AllGather, Count: bytes / 4 / int64(c.NRanks),
			Type: coll.Float32})
		if err != nil {
			log.Fatal(err)
		}
		if err := check.Plan(p); err != nil { // every rank ends with every contribution once
			log.Fatal(err)
		}
		r, err := x.Run(context.Background(), exec.One(p), trace.Discard)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%9d %-8s faster than before: %v\n", bytes, choice.Algo, r.BusBW > last)
		last = r.BusBW
	}
	// Output:
	//      1024 Ring     faster than before: true
	//     16384 Ring     faster than before: true
	//    262144 Ring     faster than before: true
	//   4194304 Ring     faster than before: true
	//  67108864 Ring     faster than before: true
}
