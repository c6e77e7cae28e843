package accuracy

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
)

// vendorHead begins the page of vendors' sweeps.
const vendorHead = `# How far simulated times are from vendors' sweeps, by GPU

Written by ` + "`go run ./dev/cmd/accuracy vendors page`" + `; do not edit. Data: sweeps of single nodes that others published
(AIConfigurator's, with NCCL 2.27.3 to 2.29.2; half precision, one process with a thread a GPU, without CUDA graphs: here
` + "`--procs 1 -t N -d half --nccl-version …`" + `), which are not in this repository. Errors are |simulated/measured - 1| in
percent, mean, and the mean with its sign. A table is *fitted* where the lowest bit of the first byte of the SHA-256 of its source, a
newline and its name is 0: classes were fitted to every second size of those (H100 and H200: to none, their class is measured here).
No fit saw the *unseen* ones.
`

// VendorPage is the page of vendors' sweeps, of tables in a folder.
func VendorPage(ctx context.Context, tables fs.FS) (string, error) {
	var b, detail strings.Builder
	b.WriteString(vendorHead)
	b.WriteString("\n| GPU | machine | tables | half | points | mean from 1 MiB | mean, all sizes | max |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	detail.WriteString("\n## By operation and size\n\n" +
		"| GPU | half | operation | < 64 KiB | to 1 MiB | to 16 MiB | " +
		"from 16 MiB | from 1 MiB | all | max |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, v := range Vendors {
		for _, half := range []string{"fitted", "unseen"} {
			points, err := SimulateVendor(ctx, tables, v.Key, "", half == "fitted")
			if err != nil {
				return "", err
			}
			names := map[string]bool{}
			for i := range points {
				names[points[i].Run.Name] = true
			}
			all := sums(points)
			fmt.Fprintf(&b, "| %s | `%s` | %d | %s | %d | %s | %s | %s |\n", v.Short, v.Topo, len(names),
				half,
				all.all.n, percent(all.large.mean()), percent(all.all.mean()), percent(all.all.max))
			rowsOf(points, func(op string, s *sized) {
				fmt.Fprintf(&detail, "| %s | %s | %s |", v.Short, half, op)
				for i := range s.by {
					fmt.Fprintf(&detail, " %s (%+.1f) |", percent(s.by[i].mean()), 100*s.bias[i])
				}
				fmt.Fprintf(&detail, " %s | %s | %s |\n", percent(s.large.mean()), percent(s.all.mean()),
					percent(s.all.max))
			})
		}
	}
	b.WriteString(detail.String())
	return b.String(), nil
}
