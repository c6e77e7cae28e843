package sym

import (
	"strings"

	"github.com/simccl/simccl/coll"
)

// Between lists the candidates of NCCL's choice for a task between nodes where GPUs drive the NICs; nil if
// NCCL plans the task otherwise (init.cc:1475, sym_kernels.cc:558, 581 of v2.29.7-1).
func (c *Comm) Between(t Task) []string {
	r := c.Rules
	switch {
	case r.CopyNodes && c.Nodes > 1 && !c.WindowsOff && c.P2P && c.Params.CTAPolicy == 2 &&
		t.Windows == Both && (t.Func == coll.AllGather || t.Func == coll.AllToAll):
		return []string{CopiesBetween} // ce_coll.cc:719 of v2.30.7-1
	case c.Nodes < 2 || c.WindowsOff || !c.P2P || r.NVLinkOnly && !c.DirectNVLink || c.Params.GINOff,
		c.FusedNICs && r.GINPhysical, !c.implemented(t.normal()),
		t.Windows != Both && !(t.Func == coll.ReduceScatter && t.Windows == SendWindow):
		return nil
	}
	t = t.normal()
	if uint64(t.Count)*uint64(t.Type.Size())*uint64(c.Ranks) >= 64<<30 {
		return nil
	}
	stores := c.NVLS && c.PerNode >= r.MulticastRanks
	named := c.Params.Kernel
	var out []string
	for _, k := range r.GIN {
		if k.Func == t.Func && (!k.Stores || stores) && (!k.Loads || stores && c.reducesInSwitch(t)) &&
			(!named.Set || named.Value == "^" || named.Value == k.Name) {
			out = append(out, k.Name)
		}
	}
	return out
}

// CopiesBetween names the method that replaces kernels between nodes with NCCL_CTA_POLICY=2.
const CopiesBetween = "copy engines within the nodes and RMA between them"

// OneOf formats kernel names of which NCCL chooses one.
func OneOf(kernels []string) string { return strings.Join(kernels, " or ") }
