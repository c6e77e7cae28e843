package topo

import "fmt"

var (
	pathNames = [...]string{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET",
		"DIS"}
	linkNames = [...]string{"LOC", "NVL", "", "C2C", "PCI", "", "", "", "", "SYS", "NET"}
	nodeNames = [...]string{"GPU", "PCI", "NVS", "CPU", "NIC", "NET", "GIN", "DEV"}
)

// String returns NCCL's name of a path kind (topo.cc:24).
func (k PathKind) String() string {
	if int(k) < len(pathNames) {
		return pathNames[k]
	}
	return fmt.Sprintf("PathKind(%d)", uint8(k))
}

// PathName returns the name of a kind of path in the library that the System is for.
func (s *System) PathName(k PathKind) string {
	if k == PathNVL && s.Rules.Topo.LinkName != "" {
		return s.Rules.Topo.LinkName
	}
	return k.String()
}

// LinkName returns the name of a kind of link in the library that the System is for.
func (s *System) LinkName(k LinkKind) string {
	if k == LinkNVL && s.Rules.Topo.LinkName != "" {
		return s.Rules.Topo.LinkName
	}
	return k.String()
}

// String returns NCCL's name of a link kind (topo.cc:23).
func (k LinkKind) String() string {
	if int(k) < len(linkNames) {
		return linkNames[k]
	}
	return fmt.Sprintf("LinkKind(%d)", uint8(k))
}

// String returns NCCL's name of a node kind (topo.cc:22).
func (k NodeKind) String() string {
	if int(k) < len(nodeNames) {
		return nodeNames[k]
	}
	return fmt.Sprintf("NodeKind(%d)", uint8(k))
}
