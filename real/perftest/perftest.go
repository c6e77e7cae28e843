// Package perftest measures RDMA between two ports as the programs of perftest do, and in addition the
// pattern of NCCL's own transport: clear-to-sends, eight messages in flight, a write with immediate at the
// end of each. If write is fast and nccl is slow, neither NIC nor wire is the cause; remark explains the
// difference.
package perftest

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/real/internal/ibv"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/team"
)

// NCCL is the test of NCCL's pattern.
const NCCL = ibv.OpNCCL

// allSizes returns the sizes of -a: powers of two from 2 bytes to 8 MiB.
func allSizes() []int {
	var out []int
	for n := 2; n <= 8<<20; n *= 2 {
		out = append(out, n)
	}
	return out
}

// Case is one test of one size.
type Case = ibv.PerfConfig

// Figures are the measured bandwidth or latency of a case.
type Figures = ibv.Perf

// Row is a case that was measured, bandwidth before latency.
type Row struct {
	Case      Case
	Bandwidth *Figures
	Latency   *Figures
}

// Ports are the two ends of the measurements: the local one, and the other one if it belongs to this machine
// too.
type Ports struct {
	net      *ibv.Net
	devs     []transport.Properties
	from, to int
}

// Open opens the ports by name: DEVICE, or DEVICE,DEVICE for both ends; an empty name selects the first and
// the last that are up. port 0 is the first port of a device.
func Open(set netcfg.IB, device string, port int) (*Ports, error) {
	n, err := ibv.NewNet(set)
	if err != nil {
		return nil, err
	}
	p := &Ports{net: n}
	if p.devs, err = n.Devices(); err == nil {
		p.from, p.to, err = choose(p.devs, device, port)
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return p, nil
}

// Close closes the devices that the ports are of.
func (p *Ports) Close() { p.net.Close() }

// From returns the name of the local port's device.
func (p *Ports) From() string { return p.devs[p.from].Name }

// To returns the name of the device of the other end, if it belongs to this machine.
func (p *Ports) To() string { return p.devs[p.to].Name }

// Port returns the number of the local port.
func (p *Ports) Port() int { return p.devs[p.from].Port }

// choose returns the two ends among the ports that are up.
func choose(devs []transport.Properties, device string, port int) (from, to int, err error) {
	find := func(name string, def int) (int, error) {
		var have []string
		for i, d := range devs {
			if (name == "" && port == 0 && i == def) || (name == d.Name || name == "") &&
				(port == 0 || port == d.Port) {
				return i, nil
			}
			have = append(have, fmt.Sprintf("%s:%d", d.Name, d.Port))
		}
		return 0, team.Refuse("-d %s -i %d: no such port is up; there are %s", name, port,
			strings.Join(have, ", "))
	}
	if device == "" && port == 0 {
		return 0, len(devs) - 1, nil
	}
	a, b, two := strings.Cut(device, ",")
	if from, err = find(a, 0); err != nil || !two {
		return from, from, err
	}
	to, err = find(b, len(devs)-1)
	return from, to, err
}

// Remote is the other side: a program on another host that runs Serve.
type Remote struct {
	Addr string // HOST:PORT
	Key  []byte // the secret that both share
}

// Measure measures every test at every size, calls each for each row, and returns a remark for each size.
// Without at, both ends belong to this machine.
func (p *Ports) Measure(ctx context.Context, tests []string, sizes []int, like Case, at *Remote,
	each func(*Row)) ([]string, error) {
	measure := func(c Case) (*Figures, error) { return p.net.RunPerf(ctx, p.from, p.to, c) }
	if at != nil {
		measure = func(c Case) (*Figures, error) { return p.net.Perf(ctx, at.Addr, p.from, at.Key, c) }
	}
	var remarks []string
	for _, size := range sizes {
		rows := map[string]*Row{}
		for _, t := range tests {
			c := like
			c.Op, c.Size = t, size
			row, err := measureRow(c, measure)
			if err != nil {
				return nil, fmt.Errorf("%s of %d bytes: %w", t, size, err)
			}
			each(row)
			rows[t] = row
		}
		if s := remark(rows["write"], rows[NCCL]); s != "" {
			remarks = append(remarks, s)
		}
	}
	return remarks, nil
}

// measureRow measures bandwidth, then latency.
func measureRow(c Case, measure func(Case) (*Figures, error)) (r *Row, err error) {
	r = &Row{Case: c}
	if r.Bandwidth, err = measure(c); err != nil {
		return nil, err
	}
	c.Latency = true
	r.Latency, err = measure(c)
	return r, err
}

// End informs the other side that the measurements are complete.
func (r *Remote) End(ctx context.Context) error { return ibv.EndPerf(ctx, r.Addr, r.Key) }

// Serve is the other side of Measure. failed is called for each case that failed.
func (p *Ports) Serve(ctx context.Context, ln *net.TCPListener, key []byte, failed func(Case, error)) error {
	return p.net.ServePerf(ctx, ln, p.from, key, func(c Case, err error) {
		if err != nil {
			failed(c, err)
		}
	})
}

// steps is the number of messages that NCCL has in flight on a connection.
const steps = 8

// remark returns, for one size, the share of write's bandwidth that NCCL's pattern reaches, and whether
// waiting for clear-to-sends explains the rest: eight messages of L seconds each cannot carry more than 8
// times their size in L. It is empty if one of the two was not measured.
func remark(write, nccl *Row) string {
	if write == nil || nccl == nil {
		return ""
	}
	size := write.Case.Size
	part := nccl.Bandwidth.Average / write.Bandwidth.Average
	s := fmt.Sprintf("%d bytes: nccl reaches %.0f %% of write", size, 100*part)
	if part >= 0.9 {
		return s
	}
	each := nccl.Latency.Typical().Seconds()
	bound := steps * float64(size) / each
	s += fmt.Sprintf("; %d messages of %.2f usec in flight allow %.4f GB/sec", steps, each*1e6, bound/1e9)
	if nccl.Bandwidth.Average > bound/2 {
		return s + ", so the round trip of the clear-to-send is the bound: larger messages or more " +
			"connections help"
	}
	return s + ": the rest is not spent on the wire, check the host's CPU"
}
