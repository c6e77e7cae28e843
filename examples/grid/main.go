// Command grid reads a scenario with a grid, as simccl run --scenario has it, and runs each
// of its points: all_gather by two protocols on one node and on four.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/simccl/simccl/scenario"
)

const file = `{
  "scenario": 1,
  "machine": {"nodes": [{"count": 1}]},
  "workload": {"op": "all_gather", "sizes": ["1M"]},
  "grid": [
    {"path": "machine.nodes[0].count", "values": [1, 4]},
    {"path": "nccl.env.NCCL_PROTO", "values": ["Simple", "LL128"]}
  ]
}`

func main() {
	spec, err := scenario.Parse([]byte(file), "grid.json")
	if err != nil {
		log.Fatal(err) // file, line and column
	}
	var failed error
	err = spec.Expand(func(_ int, point scenario.Spec) bool {
		var r *scenario.Result
		if r, failed = scenario.Run(context.Background(), point, scenario.Options{}); failed != nil {
			return false
		}
		// Equal digests are equal runs: results can be kept by them.
		fmt.Printf("%s  %d nodes  %-6s  %8.2f us\n", r.Digest[:8], r.Machine.Nodes, r.Rows[0].Facts.Proto,
			r.Rows[0].Out.Time.Micros())
		return true
	})
	for _, err := range []error{err, failed} {
		if err != nil {
			log.Fatal(err)
		}
	}
}
