package netpreset

import (
	"cmp"
	"fmt"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/topo/fabric"
)

// Summary is what of a network that is simulated frame by frame decides results: what the
// fabric file says over its preset, with what was chosen in place of it.
type Summary struct {
	Model   string `json:"model"`  // packet or hybrid
	Fabric  string `json:"fabric"` // the network's own name
	Preset  string `json:"preset"` // which the file's members replace
	Link    string `json:"link"`   // ethernet or infiniband
	MTU     int    `json:"mtu"`    // payload of a frame, bytes
	CC      string `json:"cc"`     // congestion control
	Source  string `json:"ccSource"`
	Repair  string `json:"repair"`  // of lost frames
	Balance string `json:"balance"` // how frames choose their routes
}

// Summarize sums a network up; without one all ports hang on one switch. ok is false
// where links are shared and frames are not simulated, or where Attach refuses it.
func Summarize(n *fabric.Network, as Choice) (s Summary, ok bool) {
	if !Framed(as.Model) {
		return s, false
	}
	if n == nil {
		n = fabric.Crossbar(nil)
	}
	own := fabric.Packets{}
	if n.Packets != nil {
		own = *n.Packets
	}
	base, err := find(cmp.Or(own.Preset, Default))
	if err != nil {
		return s, false
	}
	p := chosen(over(base.Packets, own), as)
	source := cc.Source(p.CC)
	if p.DCQCN != nil {
		source += ", some replaced by the fabric file"
	}
	return Summary{Model: as.Model, Fabric: n.Name, Preset: base.Name, Link: p.Link, MTU: int(*p.MTU),
		CC: p.CC, Source: source, Repair: p.Repair, Balance: p.Balance}, true
}

// String says it in a line.
func (s *Summary) String() string {
	link := map[string]string{"ethernet": "RoCEv2 over Ethernet with PFC",
		"infiniband": "InfiniBand with credits"}[s.Link]
	if s.Repair == "trim" {
		link = "RoCEv2 over Ethernet with packet trimming, no PFC"
	}
	repair := map[string]string{"gbn": "go-back-N", "sr": "selective repeat",
		"trim": "selective repeat"}[s.Repair]
	balance := map[string]string{"queue-pair": "per queue pair", "flowlet": "per flowlet",
		"packet": "per frame"}[s.Balance]
	return fmt.Sprintf("network %s: %s, preset %s; %s, MTU %d; congestion control %s (%s); loss recovery: "+
		"%s; routes: %s", s.Model, cmp.Or(s.Fabric, "a fabric file"), s.Preset, link, s.MTU, s.CC, s.Source,
		repair, balance)
}
