package uec

import "github.com/simccl/simccl/packet/internal/rng"

// route returns the port by which a frame leaves a spine or core of several pods. Ports of leaves
// are its hosts and the spines; of spines the leaves of the pod and the cores; of cores the pods.
func (e *engine) route(spine int, to goal, f *frame) uint16 {
	n := e.net
	leaf := int(to.leaf)
	switch pod := n.Pod(leaf); {
	case spine >= n.AllSpines(): // a core
		return uint16(pod)
	case spine/n.Spines != pod:
		return e.hashed(e.beyond(spine, leaf*n.PerLeaf+int(to.port)), n.Leaves+spine, f)
	}
	return uint16(leaf % (n.Leaves / n.Pods))
}

// leaving is the port by which a frame leaves its sender's leaf, from 1, and is noted: a flow's frames of
// one path have one.
func (e *engine) leaving(leaf int, f *frame) uint16 {
	to := e.goals[f.goal()]
	port := to.port
	if int(to.leaf) != leaf {
		port = e.hashed(e.up[leaf], leaf, f)
	}
	if e.outs != nil {
		e.outs[int(f.goal())*e.cfg.Paths+int(f.path())&(e.cfg.Paths-1)] = uint8(port + 1)
	}
	return port + 1
}

// hashed is the port of a table of a switch that a frame's hash chooses.
func (e *engine) hashed(up []uint16, at int, f *frame) uint16 {
	if len(up) < 2 {
		if up == nil { // a leaf's, first needed now
			up = e.permuted(at, e.setup)
			e.tables--
			e.up[at] = up
			return e.hashed(up, at, f)
		}
		return up[0]
	}
	k := rng.PathHash(e.ids[f.flow()], uint32(f.path()), e.salt[at])
	if n := uint32(len(up)); n&(n-1) == 0 {
		return up[k&(n-1)]
	}
	return up[k%uint32(len(up))]
}
