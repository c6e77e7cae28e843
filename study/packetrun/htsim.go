package packetrun

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/packet/simfiles"
	"github.com/simccl/simccl/packet/uec"
	"github.com/simccl/simccl/units"
)

// Htsim is a scenario of htsim and the options of its command line.
type Htsim struct {
	Matrix  string `json:"htsim,omitempty"` // files
	Topo    string `json:"topo,omitempty"`
	CC      string `json:"-"`             // nscc or roce
	Balance string `json:"lb,omitempty"`  // of uec
	MTU     int    `json:"mtu,omitempty"` // bytes of a full frame; 0: the peer's
}

// The peer's defaults: sim/datacenter/main_uec.cpp, and main_roce.cpp with a
// payload of 1000 bytes and the thresholds of our reference runs.
const (
	uecMTU      = 4150
	uecHeader   = 64
	uecPaths    = 64
	rocePayload = 1000
	roceHeader0 = 64
	roceXOff    = 120
	roceXOn     = 100
)

// RunHtsim runs htsim's input files under package uec, or as RoCE under package packet.
func RunHtsim(h Htsim, o Options) (*Report, error) {
	balance, err := uec.ParseBalance(h.Balance)
	switch {
	case h.CC == "nscc" && o.EveryUs != 0:
		return nil, fail.NotYet("its engine keeps no queues and rates over time", "{EveryUs} with {CC} nscc")
	case err != nil:
		return nil, fail.Usage("{Balance}: %v", err)
	case h.CC != "nscc" && h.CC != "roce":
		return nil, fail.Usage("{CC} %q: write nscc or roce", h.CC)
	case h.CC == "roce" && balance != uec.ECMP:
		return nil, fail.NotYet("packets of a flow take one path there", "RoCE with {Balance} %s", h.Balance)
	case h.MTU != 0 && (h.MTU < 65 || h.MTU > 65000):
		return nil, fail.Usage("{MTU} %d: write 65 to 65000 bytes", h.MTU)
	}
	x, err := simfiles.LoadHtsim(h.Matrix, h.Topo, o.Read)
	var place *fail.FileError
	switch {
	case errors.As(err, &place):
		return nil, fail.Input(err)
	case err != nil:
		return nil, refused(err)
	}
	if h.CC == "roce" {
		return roce(x, h, o)
	}
	c := uec.Config{Seed: o.Seed, Balance: balance, Paths: uecPaths, MTU: uecMTU, Pools: x.Pools,
		Poll: o.Poll}
	if h.MTU > 0 {
		c.MTU = h.MTU
	}
	if o.Dry {
		return &Report{}, nil
	}
	before := CPUSeconds()
	r, err := uec.Run(&x.Network, x.Flows, &c)
	if err != nil {
		return nil, refused(err)
	}
	y := ofUEC(x, int(c.MTU), r)
	y.Model, y.Seed = fmt.Sprintf("htsim's UEC, NSCC, %s", h.Balance), o.Seed
	if o.Timing {
		s := CPUSeconds() - before
		y.CPUSeconds = &s
	}
	return y, nil
}

func ofUEC(s *simfiles.HtsimScenario, mtu int, r *uec.Result) *Report {
	flows, net := s.Flows, s.Graph()
	alone := newIdeals(&net, mtu-uecHeader, uecHeader)
	x := &Report{Flows: make([]Flow, len(flows)), PeakQueueBytes: r.PeakQueue, PeakLink: r.PeakLink,
		Marks: r.Marks, Drops: r.Drops,
		Trims: r.Trims, Retransmitted: r.Retransmitted, DataPacketHops: r.DataPacketHops}
	first, last, done := units.Time(1<<63-1), units.Time(0), 0
	for i := range flows {
		if r.Flows[i].Done {
			first, last = min(first, r.Flows[i].Start), max(last, r.Flows[i].End)
			done++
		}
	}
	for i := range flows {
		y := Flow{Src: flows[i].Src, Dst: flows[i].Dst, Bytes: flows[i].Bytes}
		y.IdealNs = alone.of(y.Src, y.Dst, y.Bytes)
		if got := &r.Flows[i]; got.Done {
			fct := int64(got.End-got.Start) / nanosecond
			y.FctNs, y.StartNs = &fct, int64(got.Start-first)/nanosecond
			y.Slowdown = y.slowdownOf()
		}
		x.Flows[i] = y
	}
	x.Slowdown = slowdown(x.Flows)
	if done > 0 {
		x.MakespanNs = int64(last-first) / nanosecond
		if done == len(flows) {
			x.Line = hostLine(&net, flows, mtu, last-first)
		}
	}
	if done < len(flows) {
		x.Unfinished = fmt.Sprintf("%d flows did not end: the triggers that they wait for never fire",
			len(flows)-done)
	}
	return x
}

// hostLine returns the busiest line of a host, counting each frame of the flows once: the engine does not
// count bytes by link.
func hostLine(n *packet.Network, flows []uec.Flow, mtu int, span units.Time) *Line {
	sent, payload := make([]int64, 2*len(n.Cables)), int64(mtu-uecHeader)
	for i := range flows {
		f := &flows[i]
		bytes := f.Bytes + (f.Bytes+payload-1)/payload*uecHeader
		sent[2*f.Src] += bytes // cables of hosts are the first, by number
		sent[2*f.Dst+1] += bytes
	}
	var most packet.Busy
	for i, c := range n.Cables {
		for k, ends := range [][2]int32{{c.A, c.B}, {c.B, c.A}} {
			if lasts := units.Time(float64(sent[2*i+k]) * 8e12 / float64(c.Rate)); lasts > most.Lasts {
				most = packet.Busy{Link: ends, Data: sent[2*i+k], Rate: c.Rate, Lasts: lasts}
			}
		}
	}
	l := line(&most, span)
	if l != nil {
		l.Hosts = true
	}
	return l
}

// roce runs a scenario with PFC alone, as htsim's RoCE without congestion
// control does: ingress queues with fixed thresholds.
func roce(x *simfiles.HtsimScenario, h Htsim, o Options) (*Report, error) {
	if len(x.Pools) > 0 {
		return nil, fail.NotYet("flows of RoCE wait for flows by number",
			"a trigger that fires several times, with {CC} roce")
	}
	if err := x.Network.Check(); err != nil {
		return nil, refused(err)
	}
	c := packet.Config{Frames: packet.Frames{Payload: rocePayload, Header: roceHeader0, Ack: roceHeader0,
		Pause: roceHeader0}, AckFrom: 1}
	if h.MTU > 0 {
		c.Frames.Payload = h.MTU
	}
	frame := int64(c.Frames.Payload + c.Frames.Header)
	c.Buffer = packet.Buffer{Bytes: 1 << 40, XOff: roceXOff * frame, XOn: roceXOn * frame}
	p, flows := x.Lossless(o.Seed, int(frame), c.Frames.Ack)
	r, err := run(&p, flows, &c, 0, o)
	if err != nil {
		return nil, err
	}
	r.Model = "htsim's RoCE, PFC, ecmp"
	return r, nil
}
