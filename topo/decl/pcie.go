package decl

import (
	"cmp"
	"strings"

	"github.com/simccl/simccl/units"
)

// PCIBridgeClass is the PCI class of a switch port (topo.cc:429).
const PCIBridgeClass = "0x060400"

// pciSpeeds maps link_speed prefixes to 100 Mb/s per lane, tried in this order
// (topo.cc:432); anything else is taken as Gen3.
var pciSpeeds = []struct {
	prefix string
	speed  int
}{{"2.5 GT/s", 15}, {"5 GT/s", 30}, {"8 GT/s", 60}, {"16 GT/s", 120}, {"32 GT/s", 240},
	{"2.5 GT/s PCIe", 15}, {"5.0 GT/s PCIe", 30}, {"8.0 GT/s PCIe", 60}, {"16.0 GT/s PCIe", 120},
	{"32.0 GT/s PCIe", 240}, {"64.0 GT/s PCIe", 480}}

// PCIBandwidth returns the rate of a PCIe link by NCCL's reckoning, and whether its
// speed text is one that NCCL knows (topo.cc:487).
func PCIBandwidth(width int, speed string) (units.GBps, bool) {
	lane, known := 60, false
	for _, s := range pciSpeeds {
		if strings.HasPrefix(speed, s.prefix) {
			lane, known = s.speed, true
			break
		}
	}
	width = cmp.Or(width, 16)
	return units.GBps(float32(float64(width*lane) / 80.0)), known
}
