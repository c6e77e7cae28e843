package topo

// bcmGen returns the generation (4 or 5) of the Broadcom PCIe switch with a device id, 0 for other devices.
// Gen5 ids contain the switch's level in the hierarchy (topo.cc:194).
func bcmGen(device uint64, level uint64) int {
	switch device & 0xfffffffffffff000 {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// flattenSwitches merges each Broadcom switch that presents itself as two levels of PCI switches, although
// all its ports have full bandwidth, into one node (topo.cc:199).
func (d *draft) flattenSwitches() {
	for i := 0; i < len(d.of[PCI]); i++ {
		sw := d.of[PCI][i]
		gen := bcmGen(sw.PCI.Device, 0)
		if gen == 0 {
			continue
		}
		var subs []*vertex
		kept := sw.edges[:0]
		for _, e := range sw.edges {
			if e.to.Kind == PCI && bcmGen(e.to.PCI.Device, 1) == gen {
				subs = append(subs, e.to)
				continue
			}
			kept = append(kept, e)
		}
		sw.edges = kept
		for _, s := range subs {
			adoptPorts(sw, s)
			d.drop(s)
			sw = d.slot(i)
		}
		sw.PCI.Device |= 0xffff // not to be treated as one again
		i = -1                  // the list has changed
		if d.rules.Topo.FlattenSecond {
			i = 0
		}
	}
}

// slot returns the i-th PCI node, or an empty one past the end. After it removes a node NCCL continues with
// the node now in the removed one's slot (topo.cc:245), which is another switch if the lower half came first
// in the list.
func (d *draft) slot(i int) *vertex {
	if i < len(d.of[PCI]) {
		return d.of[PCI][i]
	}
	return &vertex{Node: Node{Kind: PCI, PCI: &PCIInfo{}}}
}

// adoptPorts hangs what is below a lower switch on the upper one.
func adoptPorts(sw, sub *vertex) {
	for _, e := range sub.edges {
		if e.to == sw {
			continue
		}
		sw.edges = append(sw.edges, e)
		for i := range e.to.edges {
			if e.to.edges[i].to == sub {
				e.to.edges[i].to = sw
				break
			}
		}
	}
}

// drop removes a node and all links to it (topo.cc:143).
func (d *draft) drop(v *vertex) {
	for k := range d.of {
		for _, n := range d.of[k] {
			kept := n.edges[:0]
			for _, e := range n.edges {
				if e.to != v {
					kept = append(kept, e)
				}
			}
			n.edges = kept
		}
		for i, n := range d.of[k] {
			if n == v {
				d.of[k] = append(d.of[k][:i:i], d.of[k][i+1:]...)
				break
			}
		}
	}
}
