package verbs

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/real/internal/dl"
)

// LinkLayer is the link layer of a port: InfiniBand, or Ethernet (RoCE).
type LinkLayer uint8

// Link layers.
const (
	InfiniBand LinkLayer = layerIB
	Ethernet   LinkLayer = layerEthernet
)

// String returns NCCL's word for the layer.
func (l LinkLayer) String() string {
	if l == Ethernet {
		return "RoCE"
	}
	return "IB"
}

// Port is one active port of a device, with its address, MTU and speed.
type Port struct {
	Device string
	Num    uint8
	Layer  LinkLayer
	LID    uint16
	MTU    int // bytes
	// Mbps is width x speed, computed as in NCCL (net_ib.cc:562).
	Mbps int
	GIDs int // entries of the GID table
}

// Device is an open device with one protection domain and a cache of memory registrations.
type Device struct {
	lib  *Lib
	Name string
	// GUID is the system image's, equal for all functions of a card (net_ib.cc:768); MaxQP and MaxCQE are the
	// device's limits.
	GUID          uint64
	MaxQP, MaxCQE int
	ports         uint8
	ctx           uintptr
	pd            uintptr
	mu            sync.Mutex
	mrs           mrCache
	watch         watch
	// Retry applies to all QPs of the device.
	Retry Retries
}

// Retries are the repetitions of a failed ibv_modify_qp (ibvwrap.cc:96).
type Retries struct {
	All   bool // after every error, not only after time-outs
	Count int
	Sleep time.Duration // before the first retry; n times as long before the n-th
}

// OpenDevice opens a device by name.
func (l *Lib) OpenDevice(name string) (*Device, error) {
	d := &Device{lib: l, Name: name}
	d.mrs = mrCache{page: uintptr(os.Getpagesize()), release: d.Deregister}
	err := l.each(func(dev uintptr, n string) (err error) {
		if n == name {
			d.ctx, err = object("ibv_open_device", name, l.fn.openDevice.Call(dev))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if d.ctx == 0 {
		names, _ := l.DeviceNames()
		return nil, fmt.Errorf("RDMA device %q: not here; there are %v", name, names)
	}
	a := new(deviceAttr)
	err = errnoOf("ibv_query_device", name, l.fn.queryDevice.Call(d.ctx, Pointer(a)))
	if err == nil {
		d.GUID, d.MaxQP, d.MaxCQE, d.ports = swap64(a.sysImageGUID), int(a.maxQP), int(a.maxCQE),
			a.physPortCnt
		d.pd, err = object("ibv_alloc_pd", name, l.fn.allocPD.Call(d.ctx))
	}
	if err == nil {
		err = d.startEvents()
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Ports lists the device's active ports.
func (d *Device) Ports() ([]Port, error) {
	var out []Port
	for n := uint8(1); n <= d.ports; n++ {
		a, err := d.port(n)
		if err != nil {
			return nil, err
		}
		layer := LinkLayer(a.linkLayer)
		if a.state != portActive || layer != InfiniBand && layer != Ethernet {
			continue
		}
		out = append(out, Port{Device: d.Name, Num: n, Layer: layer, LID: a.lid, MTU: 128 << a.activeMTU,
			Mbps: a.mbps(), GIDs: int(a.gidTblLen)})
	}
	return out, nil
}

// port queries a port's state, with the newer call if the library has it, which also reports speeds that the
// old byte cannot hold (ibvwrap.cc:146).
func (d *Device) port(n uint8) (*portAttr, error) {
	a := new(portAttr)
	query := d.lib.fn.queryPort
	args := []uintptr{d.ctx, uintptr(n), Pointer(a)}
	if peek[uintptr](d.ctx, offABICompat) == ^uintptr(0) && peek[uint64](d.ctx, offExtSize) >=
		extSizeQueryPort {
		if f := peek[uintptr](d.ctx, offExtQueryPort); f != 0 {
			query = dl.Proc(f)
			args = append(args, sizePortAttr)
		}
	}
	err := errnoOf("ibv_query_port", d.Name, query.Call(args...))
	runtime.KeepAlive(a)
	return a, err
}

// GID returns entry i of the port's table.
func (d *Device) GID(port uint8, i int) (GID, error) {
	g := new(GID)
	err := errnoOf("ibv_query_gid", d.Name, d.lib.fn.queryGID.Call(d.ctx, uintptr(port), uintptr(i),
		Pointer(g)))
	return *g, err
}

// FindGID returns the index of the port's address that NCCL uses (net_ib.cc:470, ncclIbGetGidIndex): for
// InfiniBand the routable one if set, else entry 0; for RoCE the one that the settings select.
func (d *Device) FindGID(p Port, set *netcfg.IB) (int, error) {
	if p.Layer == InfiniBand {
		routable := set.RoutableGID.Or(1)
		if routable < 0 || routable >= p.GIDs {
			return 0, nil
		}
		g, err := d.GID(p.Num, routable)
		if err == nil && g.flid() == 0 {
			routable = 0
		}
		return routable, err
	}
	if i := set.GIDIndex.Or(-1); i >= 0 {
		return i, nil
	}
	w := gidWish{ipv6: set.IPv6, within: addressRange(set.AddrRange, set.IPv6),
		version: set.RoCEVersion.Or(2)}
	table := make([]gidEntry, p.GIDs)
	for i := range table {
		// An entry that cannot be read is not used.
		if g, err := d.GID(p.Num, i); err == nil && g != (GID{}) {
			table[i] = gidEntry{g, sysfsRoCEVersion(d.Name, p.Num, i)}
		}
	}
	return w.pick(table), nil
}

// Register registers memory with the NIC, or adds a user to a registration that contains it. relaxed lets PCI
// writes overtake each other if library and kernel support it.
func (d *Device) Register(mem []byte, relaxed bool) (*MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mrs.register = func(addr uintptr, size int) (*MR, error) {
		return d.register(addr, size, AccessLocalWrite|AccessRemoteWrite|AccessRemoteRead|AccessRemoteAtomic,
			relaxed)
	}
	return d.mrs.take(AddressOf(mem), len(mem))
}

// register makes a new registration. Only the newer call takes flags that a kernel may not know
// (net_ib.cc:1966).
func (d *Device) register(addr uintptr, size int, access uint32, relaxed bool) (*MR, error) {
	verb, args := "ibv_reg_mr", []uintptr{d.pd, addr, uintptr(size), uintptr(access)}
	f := d.lib.fn.regMR
	if relaxed && d.lib.fn.regMRIova2 != 0 {
		verb, f = "ibv_reg_mr_iova2", d.lib.fn.regMRIova2
		args = []uintptr{d.pd, addr, uintptr(size), addr, uintptr(access | accessRelaxed)}
	}
	h, err := object(verb, d.Name, f.Call(args...))
	if err != nil {
		return nil, err
	}
	return &MR{handle: h, Addr: addr, Len: size, Lkey: peek[uint32](h, offMRLkey),
		Rkey: peek[uint32](h, offMRRkey)}, nil
}

// RegisterArena makes a new registration of a whole arena, which the peer may read and write.
func (d *Device) RegisterArena(a *Arena) (*MR, error) {
	all := a.Bytes()
	return d.register(AddressOf(all), len(all), AccessLocalWrite|AccessRemoteWrite|AccessRemoteRead, false)
}

// Deregister undoes RegisterArena.
func (d *Device) Deregister(m *MR) error {
	return errnoOf("ibv_dereg_mr", d.Name, d.lib.fn.deregMR.Call(m.handle))
}

// Release removes one user of a registration; the last one ends it.
func (d *Device) Release(m *MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mrs.drop(m)
}

// Err returns the event after which the whole device is unusable; nil if none occurred.
func (d *Device) Err() error { return d.watch.dev.Get() }

// Close frees the device and its remaining registrations.
func (d *Device) Close() error {
	d.stopEvents()
	d.mu.Lock()
	defer d.mu.Unlock()
	errs := Closing{}
	errs.Keep(d.mrs.clear())
	if d.pd != 0 {
		errs.Keep(errnoOf("ibv_dealloc_pd", d.Name, d.lib.fn.deallocPD.Call(d.pd)))
	}
	errs.Keep(errnoOf("ibv_close_device", d.Name, d.lib.fn.closeDevice.Call(d.ctx)))
	return errs.First
}

// Closing collects the errors of several closing steps and keeps the first.
type Closing struct{ First error }

// Keep stores err in First unless an earlier error is there; nil is ignored.
func (c *Closing) Keep(err error) {
	if c.First == nil {
		c.First = err
	}
}
