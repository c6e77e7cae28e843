// Package draw makes the inputs that tests of several packages share: simple communicators and requests to
// test plans with (Plain, Kernels), random ones (Layout, Request, Pairs), programs of ranks (NewProgram),
// places in a host (Place). What a test draws for itself alone is in its own file.
package draw

// Place is where a device of a random host is: which NUMA node, host bridge, tree of switches and switch it
// is below, each counted over the whole host.
type Place struct{ NUMA, Bridge, Tree, PIX int }

// To is how far apart two devices are, in nvidia-smi's words.
func (a Place) To(b Place) string {
	switch {
	case a.PIX == b.PIX:
		return "PIX"
	case a.Tree == b.Tree:
		return "PXB"
	case a.Bridge == b.Bridge:
		return "PHB"
	case a.NUMA == b.NUMA:
		return "NODE"
	}
	return "SYS"
}
