package sim_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/testdata/topos"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/trace/validate"
)

// From a topology file to a decision, a plan, a simulated time and a trace:
// what `simccl run all_reduce --sizes 1M --trace` does. (The checks of errors
// are left out.)
func Example() {
	spec, _ := topoxml.Parse(topos.DGXH100, topos.DGXH100Name)
	cfg, _, _ := config.Load(config.Sources{})
	cluster, _ := fabric.NewUniform(spec, 2, cfg.Topo)
	c, _ := comm.New(cluster, comm.Params{Search: cfg.Search, Connect: cfg.Connect, Tuning: cfg.Tuning, Plan: cfg.Plan, Access: cfg.Topo.Access})
	p, choice, _ := c.Plan(comm.Op{Func: coll.AllReduce, Count: 1 << 18, Type: coll.Float32})
	fmt.Println(c.NRanks, "ranks,", c.NChannels, "channels:", choice.Algo, choice.Proto, "on", p.Split.NChannels)

	systems := make([]*topo.System, c.NNodes) // of each node
	for n, ranks := range c.NodeRanks {
		systems[n] = cluster.Locate(int(ranks[0])).System
	}
	var out bytes.Buffer
	sink := chrome.New(&out, chrome.Options{})
	x, _ := sim.New(sim.Config{Comm: c.Comm, Systems: systems, Trace: nccltrace.Options{Detail: nccltrace.DetailStep}})
	r, err := x.Run(context.Background(), p, sink)
	fmt.Println(err, r.Elapsed > 0, r.BusBW > 0, sink.Close())
	report, _ := validate.Check(&out)
	fmt.Println(report.Flows, "messages,", report.Errors, "errors in the trace")
	// Output:
	// 16 ranks, 16 channels: Tree LL128 on 16
	// <nil> true true <nil>
	// 1920 messages, 0 errors in the trace
}
