package ibv

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

// physical is one port in use.
type physical struct {
	dev  *verbs.Device
	near verbs.End
	card string // PCI path of the card to which its functions and ports belong
	port int    // number among the card's ports, from 1
}

// virtual is a device that the net offers: one port, or several fused ports.
type virtual struct {
	name  string
	ports []int // indexes into Net.phys
}

// Net is the verbs transport over the machine's selected ports.
type Net struct {
	lib     *verbs.Lib
	set     netcfg.IB
	relaxed bool
	devs    []*verbs.Device
	phys    []physical
	virt    []virtual // every single port, then the fused devices
}

// NewNet opens the ports that NCCL_IB_HCA selects.
func NewNet(set netcfg.IB) (*Net, error) {
	if set.Service == nil {
		s := netcfg.DefaultService()
		set.Service = &s
	}
	if n := set.QPsPerPort(); n > maxQPs {
		return nil, fmt.Errorf("NCCL_IB_QPS_PER_CONNECTION=%d: up to %d", n, maxQPs)
	}
	if set.Disabled {
		return nil, &exec.UnsupportedError{Feature: verbs.Feature, Needs: "NCCL_IB_DISABLE unset",
			Found: "NCCL_IB_DISABLE=1, with which NCCL uses sockets"}
	}
	lib, err := verbs.Open()
	if err != nil {
		return nil, err
	}
	names, err := lib.DeviceNames()
	if err != nil {
		return nil, err
	}
	mode := set.Relaxed.Or(2)
	n := &Net{lib: lib, set: set, relaxed: (mode == 1 || mode == 2) && lib.CanRelax()}
	for _, name := range names {
		if err := n.add(name); err != nil {
			n.Close()
			return nil, err
		}
	}
	if len(n.phys) == 0 {
		n.Close()
		return nil, &exec.UnsupportedError{Feature: verbs.Feature, Needs: "an active port" + ofHCA(set.HCA),
			Found: "devices " + strings.Join(names, ", ") + " have none"}
	}
	return n, nil
}

// maxQPs is the largest number of QPs of a connection (net_ib.cc:975, NCCL_IB_MAX_QPS).
const maxQPs = 128

func ofHCA(hca string) string {
	if hca == "" {
		return ""
	}
	return " that NCCL_IB_HCA=" + hca + " allows"
}

func (n *Net) add(name string) error {
	d, err := n.lib.OpenDevice(name)
	if err != nil {
		return err
	}
	s := &n.set
	d.Retry = verbs.Retries{All: s.RetryAll, Count: s.Retries.Or(34),
		Sleep: time.Duration(s.RetrySleep.Or(100)) * time.Millisecond}
	ports, err := d.Ports()
	if err != nil {
		d.Close()
		return err
	}
	used := false
	for _, p := range ports {
		if !Chosen(s.HCA, p.Device, int(p.Num)) {
			continue
		}
		e := verbs.End{Port: p}
		if e.GIDIndex, err = d.FindGID(p, s); err == nil {
			e.GID, err = d.GID(p.Num, e.GIDIndex)
		}
		if err != nil {
			d.Close()
			return err
		}
		used = true
		path, _ := filepath.EvalSymlinks("/sys/class/infiniband/" + p.Device + "/device")
		n.use(physical{dev: d, near: e, card: cardPath(path, !s.SplitVFs)})
	}
	if !used {
		return d.Close()
	}
	n.devs = append(n.devs, d)
	return nil
}

// cardPath returns a function's PCI path with function number 0; with mergeVFs, also the device number is 0,
// so that virtual functions belong to their card (net_ib.cc:521, ncclIbGetPciPath).
func cardPath(path string, mergeVFs bool) string {
	b := []byte(path)
	if len(b) < 7 || b[len(b)-2] != '.' {
		return path // not a PCI function
	}
	zero := []int{1}
	if mergeVFs {
		zero = []int{1, 3, 4}
	}
	for _, i := range zero {
		b[len(b)-i] = '0'
	}
	return string(b)
}

// use adds a port, and a device with this port only. Its number continues the numbering of its card's other
// functions, each of which numbers its own ports from 1 (net_ib.cc:946).
func (n *Net) use(c physical) {
	c.port = int(c.near.Port.Num) + n.portsOf(c.card)
	n.virt = append(n.virt, virtual{c.near.Port.Device, []int{len(n.phys)}})
	n.phys = append(n.phys, c)
}

func (n *Net) portsOf(card string) (count int) {
	for _, p := range n.phys {
		if card != "" && p.card == card {
			count++
		}
	}
	return count
}

// Fuse adds a device of several ports, which sends data over all of them (net_ib.cc:598, ncclIbMakeVDevice),
// and returns its number.
func (n *Net) Fuse(ports ...int) (int, error) {
	switch {
	case len(ports) < 1 || len(ports) > maxNICs:
		return 0, fmt.Errorf("fuse %d ports: 1 to %d", len(ports), maxNICs)
	case len(ports) > 1 && n.set.NoFusion:
		return 0, errors.New("fuse ports: NCCL_IB_MERGE_NICS=0 forbids it")
	}
	var names []string
	for i, p := range ports {
		if p < 0 || p >= len(n.phys) {
			return 0, fmt.Errorf("fuse port %d: there are %d", p, len(n.phys))
		}
		first, here := n.phys[ports[0]].near.Port, n.phys[p].near.Port
		if first.Layer != here.Layer {
			return 0, fmt.Errorf("fuse %s (%v) with %s (%v): not of one link layer; choose by NCCL_IB_HCA",
				first.Device, first.Layer, here.Device, here.Layer)
		}
		if slices.Contains(ports[:i], p) {
			return 0, fmt.Errorf("fuse %s with itself", here.Device)
		}
		names = append(names, here.Device)
	}
	n.virt = append(n.virt, virtual{strings.Join(names, "+"), slices.Clone(ports)})
	return len(n.virt) - 1, nil
}

// Chosen reports whether NCCL_IB_HCA's list allows a port (net_ib.cc:740).
func Chosen(list, dev string, port int) bool { return iflist.Listed(list, dev, port) }

// Name returns the plugin's name in NCCL's logs.
func (n *Net) Name() string { return "IB" }

// Devices lists the ports in use, and the devices fused from them.
func (n *Net) Devices() ([]transport.Properties, error) {
	var out []transport.Properties
	for _, v := range n.virt {
		p := &n.phys[v.ports[0]]
		q := transport.Properties{Name: v.name, Port: p.port, MaxRecvs: transport.MaxRecvs}
		for _, i := range v.ports {
			q.Mbps += n.phys[i].near.Port.Mbps
		}
		out = append(out, q)
	}
	return out, nil
}

// Close closes the devices; all connections must be closed before.
func (n *Net) Close() error {
	var c verbs.Closing
	for _, d := range n.devs {
		c.Keep(d.Close())
	}
	return c.First
}

// invitation is the content of a Handle.
type invitation struct {
	Addr string
	Key  transport.Key
}

type listener struct {
	net *Net
	dev int
	ln  *net.TCPListener
	inv invitation
}

// Listen waits for a sender on a local TCP port, over which the QPs are set up.
func (n *Net) Listen(dev int) (transport.Listener, error) {
	if dev < 0 || dev >= len(n.virt) {
		return nil, fmt.Errorf("listen: no RDMA device %d, there are %d", dev, len(n.virt))
	}
	host := cmp.Or(n.set.Host, "127.0.0.1")
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	l := &listener{net: n, dev: dev, ln: ln.(*net.TCPListener), inv: invitation{Addr: ln.Addr().String()}}
	l.inv.Key, err = transport.NewKey()
	return l, err
}

func (l *listener) Handle() transport.Handle {
	b, _ := json.Marshal(l.inv)
	return b
}

func (l *listener) Close() error { return l.ln.Close() }

// Accept accepts the first peer that proves the handle's key.
func (l *listener) Accept(ctx context.Context) (transport.RecvComm, error) {
	var conn net.Conn
	var far greeting
	err := transport.Admit(ctx, l.ln, setupTime, l.inv.greeted, func(c net.Conn, g greeting) bool {
		conn, far = c, g
		return true
	})
	if err != nil {
		return nil, err
	}
	return l.net.newRecv(l.dev, conn, &far)
}

// greeted verifies that a new connection knows the key, and reads its greeting.
func (v *invitation) greeted(c net.Conn, known func()) (g greeting, err error) {
	if _, err = v.Key.Check(c, known); err == nil {
		err = readLine(c, &g)
	}
	return g, err
}

// Connect connects to a listener.
func (n *Net) Connect(ctx context.Context, dev int, to transport.Handle) (transport.SendComm, error) {
	if dev < 0 || dev >= len(n.virt) {
		return nil, fmt.Errorf("connect: no RDMA device %d, there are %d", dev, len(n.virt))
	}
	var inv invitation
	if err := json.Unmarshal(to, &inv); err != nil {
		return nil, fmt.Errorf("connect: not a handle of this transport: %w", err)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", inv.Addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	_ = c.SetDeadline(time.Now().Add(setupTime))
	if err := inv.Key.Prove(c, 0); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return n.newSend(dev, c)
}

// setupTime bounds the exchange of QP addresses.
const setupTime = 20 * time.Second
