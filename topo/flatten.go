package topo

// bcmGen reports which generation of Broadcom switch a device id names, 0 for
// none; Gen5 ids carry the level in the hierarchy (topo.cc:194).
func bcmGen(device uint64, level uint64) int {
	switch device & 0xfffffffffffff000 {
	case 0x1000c0101000a000:
		return 4
	case 0x1000c03010000000 | level*0x1000:
		return 5
	}
	return 0
}

// flattenSwitches makes one node of each Broadcom switch that shows itself as
// two levels although all its ports have full bandwidth (topo.cc:199).
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

// slot is the PCI node at a place of the list. NCCL continues with what is
// in the switch's place after a node was removed (topo.cc:245), which is another
// one where the lower half, by its id, was the upper one in the tree.
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
