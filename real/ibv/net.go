package ibv

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/transport"
)

// Settings are the NCCL_IB_* variables that change what goes over the wire;
// the zero value is NCCL's defaults.
type Settings struct {
	HCA         string // NCCL_IB_HCA
	GIDIndex    int    // NCCL_IB_GID_INDEX; used where GIDSet
	GIDSet      bool
	IPv6        bool // NCCL_IB_ADDR_FAMILY=AF_INET6
	QPs         int  // NCCL_IB_QPS_PER_CONNECTION, default 1
	SplitData   bool // NCCL_IB_SPLIT_DATA_ON_QPS
	ARThreshold int  // NCCL_IB_AR_THRESHOLD, default 8192
	// Adaptive is NCCL_IB_ADAPTIVE_ROUTING; unset it is on for InfiniBand.
	Adaptive    bool
	AdaptiveSet bool
	Inline      bool     // NCCL_IB_USE_INLINE: the CTS goes inline
	Relaxed     bool     // NCCL_IB_PCI_RELAXED_ORDERING
	Service     *Service // timeout, retries, SL, TC, pkey
	Host        string   // local address of the connections' set-up
}

// Net is the verbs transport over the machine's chosen ports.
type Net struct {
	lib  *Lib
	set  Settings
	devs map[string]*Device
	port []Port
	gid  []int
}

// NewNet opens the ports that NCCL_IB_HCA chooses.
func NewNet(set Settings) (*Net, error) {
	if set.QPs < 1 {
		set.QPs = 1
	}
	if set.ARThreshold == 0 {
		set.ARThreshold = 8192
	}
	if set.Service == nil {
		s := DefaultService
		set.Service = &s
	}
	lib, err := Open()
	if err != nil {
		return nil, err
	}
	names, err := lib.DeviceNames()
	if err != nil {
		return nil, err
	}
	n := &Net{lib: lib, set: set, devs: map[string]*Device{}}
	for _, name := range names {
		if err := n.add(name); err != nil {
			n.Close()
			return nil, err
		}
	}
	if len(n.port) == 0 {
		n.Close()
		return nil, &exec.UnsupportedError{Feature: feature, Needs: "an active port" + ofHCA(set.HCA), Found: "devices " + strings.Join(names, ", ") + " have none"}
	}
	return n, nil
}

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
	ports, err := d.Ports()
	if err != nil {
		d.Close()
		return err
	}
	used := false
	for _, p := range ports {
		if !Chosen(n.set.HCA, p.Device, int(p.Num)) {
			continue
		}
		gid := n.set.GIDIndex
		if !n.set.GIDSet {
			if gid, err = d.FindGID(p, n.set.IPv6, sysfsRoCEVersion); err != nil {
				continue
			}
		}
		n.port, n.gid, used = append(n.port, p), append(n.gid, gid), true
	}
	if !used {
		return d.Close()
	}
	n.devs[name] = d
	return nil
}

// sysfsRoCEVersion reads the RoCE version of a GID entry from sysfs.
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

// Chosen tells whether NCCL_IB_HCA's list allows a port (net_ib.cc:701).
func Chosen(list, dev string, port int) bool { return transport.Listed(list, dev, port) }

// Name is the plugin's name in NCCL's logs.
func (n *Net) Name() string { return "IB" }

// Devices lists the ports in use.
func (n *Net) Devices() ([]transport.Properties, error) {
	var out []transport.Properties
	for _, p := range n.port {
		out = append(out, transport.Properties{Name: p.Device, PCIPath: "/sys/class/infiniband/" + p.Device + "/device", GUID: p.GUID,
			Mbps: p.Mbps, Port: int(p.Num), MaxComms: 1 << 17, MaxRecvs: transport.MaxRecvs, Regs: true})
	}
	return out, nil
}

// Close closes the devices; connections must be closed before.
func (n *Net) Close() error {
	var first error
	for _, d := range n.devs {
		if err := d.Close(); first == nil {
			first = err
		}
	}
	return first
}

// invitation is what a Handle holds.
type invitation struct {
	Addr  string
	Token [16]byte
}

type listener struct {
	net *Net
	dev int
	ln  net.Listener
	inv invitation
}

// Listen waits for a sender on a local TCP port, by which the QPs are set up.
func (n *Net) Listen(dev int) (transport.Listener, error) {
	if dev < 0 || dev >= len(n.port) {
		return nil, fmt.Errorf("listen: no RDMA device %d, there are %d", dev, len(n.port))
	}
	host := n.set.Host
	if host == "" {
		host = "127.0.0.1"
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	l := &listener{net: n, dev: dev, ln: ln, inv: invitation{Addr: ln.Addr().String()}}
	l.inv.Token, err = newToken()
	return l, err
}

func (l *listener) Handle() transport.Handle {
	b, _ := json.Marshal(l.inv)
	return b
}

func (l *listener) Close() error { return l.ln.Close() }

// Accept takes the first peer that shows the handle's token.
func (l *listener) Accept(ctx context.Context) (transport.RecvComm, error) {
	stop := context.AfterFunc(ctx, func() { l.ln.Close() })
	defer stop()
	for {
		c, err := l.ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return nil, fmt.Errorf("accept: %w", err)
		}
		r, err := l.net.newRecv(l.dev, c, l.inv.Token)
		if err == errStranger {
			c.Close()
			continue
		}
		if err != nil {
			c.Close()
			return nil, err
		}
		return r, nil
	}
}

// Connect reaches a listener.
func (n *Net) Connect(ctx context.Context, dev int, to transport.Handle) (transport.SendComm, error) {
	if dev < 0 || dev >= len(n.port) {
		return nil, fmt.Errorf("connect: no RDMA device %d, there are %d", dev, len(n.port))
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
	s, err := n.newSend(dev, c, inv.Token)
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// setupTime bounds the exchange of QP addresses.
const setupTime = 20 * time.Second
