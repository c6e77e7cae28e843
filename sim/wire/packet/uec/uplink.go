package uec

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

// leaving is the port by which a frame leaves its sender's leaf: a flow's frames of one path have one.
func (e *engine) leaving(leaf int, f *frame) uint16 {
	if e.outs == nil {
		return e.chosen(leaf, f)
	}
	k := &e.outs[int(f.goal())*e.cfg.Paths+int(f.path())&(e.cfg.Paths-1)]
	if *k == 0 {
		*k = uint8(e.chosen(leaf, f) + 1)
	}
	return uint16(*k - 1)
}

// chosen is leaving where it is not known.
func (e *engine) chosen(leaf int, f *frame) uint16 {
	if to := e.goals[f.goal()]; int(to.leaf) == leaf {
		return to.port
	}
	return e.hashed(e.up[leaf], leaf, f)
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
	k := jenkins(e.ids[f.flow()], uint32(f.path()), e.salt[at])
	if n := uint32(len(up)); n&(n-1) == 0 {
		return up[k&(n-1)]
	}
	return up[k%uint32(len(up))]
}
