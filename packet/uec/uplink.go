package uec

import "github.com/simccl/simccl/packet/internal/rng"

// route returns a frame's egress port at a spine or core of several pods. A spine's ports: its pod's leaves,
// then cores; a core's: pods.
func (e *engine) route(spine int, to goal, f *frame) uint16 {
	n := e.net
	leaf := int(to.leaf)
	switch pod := n.Pod(leaf); {
	case spine >= n.AllSpines(): // a core
		return uint16(pod)
	case spine/n.Spines != pod:
		return e.hashed(e.coreTable(spine, leaf*n.PerLeaf+int(to.port)), n.Leaves+spine, f)
	}
	return uint16(leaf % (n.Leaves / n.Pods))
}

// leaving returns a frame's egress port at its sender's leaf, from 1, and caches it by goal and path.
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

// hashed returns the port of a switch's table that the frame's hash selects.
func (e *engine) hashed(up []uint16, at int, f *frame) uint16 {
	if len(up) < 2 {
		if up == nil { // a leaf's table, first needed now
			up = e.spineTable(at, e.setup)
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
