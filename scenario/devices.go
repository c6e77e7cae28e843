package scenario

import (
	"fmt"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// Device is a rank's GPU as nccl-tests lists it.
type Device struct {
	Rank, Node, Dev int
	Group           int // of ranks that are divided
	Host, Name      string
	BusID           string
}

// listDevices lists the GPUs by rank, whose NCCL node is nodeOf's and whose group groups'; nil:
// all are of one.
func listDevices(c *fabric.Cluster, nodeOf []int32, groups []int) []Device {
	out := make([]Device, c.NRanks())
	known := map[*topo.GPUInfo]Device{} // equal nodes share their GPUs
	for r := range out {
		p := c.Locate(r)
		g := p.System.Nodes[p.GPU].GPU
		d, ok := known[g]
		if !ok {
			id := cnum.BusID(g.BusID)
			d = Device{Dev: g.Dev, Name: g.Name, BusID: fmt.Sprintf("%04x:%02x:%02x", id>>20, id>>12&0xff,
				id>>4&0xff)}
			if d.Name == "" {
				d.Name = fmt.Sprintf("sm_%d", g.SM)
			}
			known[g] = d
		}
		if d.Rank, d.Node, d.Host = r, int(nodeOf[r]), c.HostName(p.Host); groups != nil {
			d.Group = groups[r]
		}
		out[r] = d
	}
	return out
}
