package accuracy

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/golden"
)

const networkHead = `# Between nodes: published tables against simulated ones

Written by ` + "`SIMCCL_UPDATE=1 go test ./internal/accuracy -run NetworkPage`" + `; do not edit. **No RDMA hardware stood behind the parameters of NICs and
proxy threads** (sim/rdma): they are from data sheets, packet headers and what these very tables reach at best. The tables are
others' (nccl-tests, busbw in GB/s), of clusters whose topology they do not publish: a machine of testdata/topos stands for each, NCCL's
rules are those of 2.28.9 whatever version was run, settings are the defaults, launch eager, the network ideal. Listed are sizes from
64 MiB to 1 GiB, or the smallest of a table that begins above. Off: simulated/published − 1 in percent, mean of the absolute values and the
range. Polaris is a hard case: its NICs (Slingshot through libfabric, no InfiniBand) are two for four GPUs and hang at other PCIe roots than
the GPUs; what crosses the CPU's root complex is slower than the links say, and no parameter of ours says so.

| table | stands for it | nodes x GPUs | sizes | published | simulated | mean off | range | within 10 % |
|---|---|---|---|---|---|---|---|---|
`

// row sums up a table.
func (p *public) row(b *strings.Builder, cs []compared) (inside, points int) {
	mean, low, high := 0.0, math.Inf(1), math.Inf(-1)
	for _, c := range cs {
		e := c.sim/c.real - 1
		mean += math.Abs(e) / float64(len(cs))
		low, high = min(low, e), max(high, e)
		if math.Abs(e) <= 0.10 {
			inside++
		}
	}
	first, last := cs[0], cs[len(cs)-1]
	cast := ""
	if p.cast == comm.MulticastAuto && p.topo == "dgx-h100" {
		cast = ", multicast"
	}
	fmt.Fprintf(b, "| %s | %s%s | %d x %d | %d–%d MiB | %.1f–%.1f | %.1f–%.1f | %.1f | %+.1f to %+.1f | %d of %d |\n", p.file, p.topo, cast, p.nodes, p.gpus,
		first.bytes>>20, last.bytes>>20, first.real, last.real, first.sim, last.sim, 100*mean, 100*low, 100*high, inside, len(cs))
	return inside, len(cs)
}

// TestNetworkPage keeps docs/ACCURACY-NETWORK.md.
func TestNetworkPage(t *testing.T) {
	if testing.Short() || !golden.Updating() {
		t.Skip("simulates every published table; SIMCCL_UPDATE=1 writes the page")
	}
	var b strings.Builder
	b.WriteString(networkHead)
	inside, points := 0, 0
	for i := range publics {
		p := &publics[i]
		in, n := p.row(&b, p.compare(t))
		if p.topo != "hgx-a100-4" {
			inside, points = inside+in, points+n
		}
	}
	fmt.Fprintf(&b, "\nWithout Polaris %d of %d points are within 10 %%.\n\n%s", inside, points, networkTail)
	golden.Text(t, golden.Root(t, "docs", "ACCURACY-NETWORK.md"), b.String())
}

const networkTail = `## Where it misses, and why

- **NVLSTree below 256 MiB** is too fast: published tables grow more slowly with size than the pipeline of NVLS steps does here. The cost of
  multicast is estimated; no machine with multicast was measured.
- **10 nodes of 4 GPUs at 64 MiB** are too fast with every algorithm, send/recv included, while the same cluster with 2 GPUs of a node is met
  within 3 %: something of that network, perhaps more hops between rails, that the table does not tell.
- **send/recv and alltoall through another GPU's NIC (PXN)** are too slow where both ends of a ring share two channels: steps are 128 KiB
  there, and the overhead of a step was fitted to steps of 512 KiB.
- **10 nodes of 8 GPUs, send/recv** reached 15 GB/s, less than with 4 or 2 GPUs: not explained.

## What fixes the numbers

| parameter | value | from |
|---|---|---|
| payload share of a port | 0.983 at 400 Gbit/s, 0.945 at 200 | 4,096-byte packets with their headers; 49.1 of 50 and 23.7 of 25 GB/s reached |
| PCIe Gen5 x16, Gen4 x16 | 1.12 and 1.04 of NCCL's figure | 53–55 and 25 GB/s of copies |
| proxy thread: post, poll | 0.4, 0.3 us | estimated, ±30 % |
| write with immediate, port to port | 2.0 us | estimated, ±30 % |
| flush, flag over PCIe | 1.5, 0.9 us | estimated, ±30 % |
| copy into own memory for the NIC | 0.7 of an operand | send/recv of H100 over one channel |
`
