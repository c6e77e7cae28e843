package verbs

// laneMbps holds megabits per second of one lane by active_speed's bit, laneCount lanes by active_width's bit
// (net_ib.cc:542).
var (
	laneMbps  = [...]int{2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000}
	laneCount = [...]int{1, 4, 8, 12, 2}
)

// mbps returns a port's rate of what the driver says of a lane's and of how many there are.
func (a *portAttr) mbps() int {
	speed := uint32(a.activeSpeed)
	if a.activeSpeedEx != 0 {
		speed = a.activeSpeedEx
	}
	return byBit(laneMbps[:], speed) * byBit(laneCount[:], uint32(a.activeWidth))
}

// byBit returns the entry of the lowest set bit; the last entry if none is set.
func byBit(table []int, v uint32) int {
	for i, n := range table {
		if v&(1<<i) != 0 {
			return n
		}
	}
	return table[len(table)-1]
}

// mtuCode returns enum ibv_mtu for a size in bytes.
func mtuCode(bytes int) uint32 {
	c := uint32(1)
	for c < 5 && 128<<(c+1) <= bytes {
		c++
	}
	return c
}

// End is the local end of a QP's path.
type End struct {
	Port     Port
	GID      GID
	GIDIndex int
}

// route returns the address of a QP's packets (net_ib.cc:1274, ncclIbRtrQp): by GID on Ethernet and to
// another InfiniBand subnet, else by LID.
func (n *End) route(to *Address, sl, tc uint8) ahAttr {
	ah := ahAttr{portNum: n.Port.Num, sl: sl}
	switch {
	case to.Layer == Ethernet:
		ah.isGlobal = 1
		ah.grh = globalRoute{dgid: to.GID, sgidIndex: uint8(n.GIDIndex), hopLimit: 255, trafficClass: tc}
	case n.GID.subnet() == to.GID.subnet():
		ah.dlid = to.LID
	default:
		ah.isGlobal = 1
		ah.grh = globalRoute{dgid: to.GID, sgidIndex: uint8(n.GIDIndex), hopLimit: 255}
		if ah.dlid = to.GID.flid(); ah.dlid == 0 {
			ah.dlid = to.LID
		}
	}
	return ah
}
