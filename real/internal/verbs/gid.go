package verbs

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// GID is a port's address.
type GID [16]byte

// String returns the GID as an IPv6 address.
func (g GID) String() string { return netip.AddrFrom16(g).String() }

// isV4 reports whether the GID represents an IPv4 address, unicast or multicast (net_ib.cc:326,
// getGidAddrFamily).
func (g GID) isV4() bool {
	const mapped, multicast = 0x0000ffff, 0xff0e0000
	head, middle := binary.BigEndian.Uint32(g[:]), binary.BigEndian.Uint32(g[4:])
	return middle == 0 && binary.BigEndian.Uint32(g[8:]) == mapped && (head == 0 || head == multicast)
}

// usable reports whether a GID is configured and not link-local (net_ib.cc:392, validGid).
func (g GID) usable() bool {
	linkLocal := binary.BigEndian.Uint64(g[:]) == 0xfe80<<48
	return g != GID{} && !linkLocal
}

// flid returns the routable local address (FLID) in an InfiniBand GID, 0 if there is none; subnet returns the
// part of its prefix that distinguishes subnets (net_ib.cc:460, ncclIbExtractLocalSubnetPrefix).
func (g GID) flid() uint16   { return binary.BigEndian.Uint16(g[4:]) }
func (g GID) subnet() uint16 { return binary.BigEndian.Uint16(g[6:]) }

// within reports whether the GID is in a range of addresses; for IPv4 only its last four bytes count.
func (g GID) within(r netip.Prefix) bool {
	switch {
	case !r.IsValid():
		return true
	case r.Addr().Is4():
		return r.Contains(netip.AddrFrom4([4]byte(g[12:])))
	}
	return r.Contains(netip.AddrFrom16(g))
}

// gidEntry is a row of a port's GID table; the RoCE version is 0 if the kernel does not report it.
type gidEntry struct {
	gid     GID
	version int
}

// gidWish holds the preferences for a RoCE address: NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE,
// NCCL_IB_ROCE_VERSION_NUM.
type gidWish struct {
	ipv6    bool
	within  netip.Prefix // invalid: any
	version int
}

// addressRange parses NCCL_IB_ADDR_RANGE. Like NCCL it ignores values that are no range of the wanted family.
func addressRange(text string, ipv6 bool) netip.Prefix {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4() == ipv6 {
		return netip.Prefix{}
	}
	return p
}

// pick returns the index of a RoCE port's address: entry 0, or the best of later ones, compared one after
// another (net_ib.cc:428, ncclUpdateGidIndex). The wanted family takes precedence over the wanted version.
func (w *gidWish) pick(table []gidEntry) int {
	at := 0
	for i := 1; i < len(table); i++ {
		now, next := &table[at], &table[i]
		family := next.gid.isV4() != w.ipv6 && next.gid.within(w.within)
		switch {
		case !family:
		case now.gid.isV4() != next.gid.isV4():
			at = i
		case next.gid.usable() && next.version == w.version && (now.version != next.version ||
			!now.gid.usable()):
			at = i
		}
	}
	return at
}

// sysfsRoCEVersion returns the RoCE version of a GID entry from sysfs; 0 if unknown.
func sysfsRoCEVersion(dev string, port uint8, i int) int {
	b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/%d/gid_attrs/types/%d", dev, port, i))
	switch {
	case err != nil:
		return 0
	case strings.Contains(string(b), "v2"):
		return 2
	}
	return 1
}
