// Command sweep prints what NCCL chooses for all_reduce on two DGX H100, size by size,
// how long it takes, and which link limits it.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/simccl/simccl"
)

func main() {
	spec := simccl.Spec{Workload: simccl.Workload{Op: "all_reduce",
		Range: simccl.Range{Min: "64K", Max: "256M", Factor: 16}}}
	result, err := simccl.Run(context.Background(), spec, simccl.Options{})
	if err != nil {
		log.Fatal(err) // the member that is wrong, and what to write instead
	}
	m := result.Machine
	fmt.Printf("%d ranks, rules of NCCL %s, uncertainty of times %.0f %%\n", m.Ranks, result.NCCL,
		100*m.Uncertainty)
	for _, r := range result.Rows {
		fmt.Printf("%10d B  %-9s %-6s %9.2f us %7.2f GB/s  %s\n", r.Bytes, r.Facts.Algo, r.Facts.Proto,
			r.Out.Time.Micros(), r.Out.BusBW, r.Facts.Limit)
	}
}
