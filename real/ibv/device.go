package ibv

import (
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
)

// LinkLayer is what a port speaks.
type LinkLayer uint8

// Link layers.
const (
	InfiniBand LinkLayer = layerIB
	Ethernet   LinkLayer = layerEthernet
)

// Port is one active port of a device.
type Port struct {
	Device string
	Num    uint8
	Layer  LinkLayer
	LID    uint16
	MTU    int // bytes
	// Mbps is width x speed as NCCL computes it (net_ib.cc, ncclIbSpeed).
	Mbps int
	GUID uint64
	GIDs int // entries of the GID table
}

// Device is an open device with one protection domain and a cache of memory
// registrations.
type Device struct {
	lib  *Lib
	Name string
	GUID uint64
	ctx  uintptr
	pd   uintptr
	mu   sync.Mutex
	mrs  map[mrKey]*MR
	done chan struct{}
	// asyncErr holds the first fatal asynchronous event.
	asyncErr error
}

// laneMbps are megabits per second of one lane by active_speed's bit
// (net_ib.cc ibvSpeeds), laneCount lanes by active_width's bit.
var (
	laneMbps  = [...]int{2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000}
	laneCount = [...]int{1, 4, 8, 12, 2}
)

func firstBit(v, most int) int {
	for i := 0; i < most; i++ {
		if v&(1<<i) != 0 {
			return i
		}
	}
	return most
}

// OpenDevice opens a device by name.
func (l *Lib) OpenDevice(name string) (*Device, error) {
	d := &Device{lib: l, Name: name, mrs: map[mrKey]*MR{}, done: make(chan struct{})}
	err := l.each(func(dev uintptr, n string) (err error) {
		if n == name {
			d.ctx, err = object("ibv_open_device", name, l.fn.openDevice.Call(dev))
			d.GUID = swap64(uint64(l.fn.getDeviceGUID.Call(dev)))
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
	if d.pd, err = object("ibv_alloc_pd", name, l.fn.allocPD.Call(d.ctx)); err != nil {
		l.fn.closeDevice.Call(d.ctx)
		return nil, err
	}
	return d, nil
}

func swap64(v uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return binary.BigEndian.Uint64(b[:])
}

func swap32(v uint32) uint32 {
	return v>>24 | v>>8&0xff00 | v<<8&0xff0000 | v<<24
}

// Ports lists the device's active ports.
func (d *Device) Ports() ([]Port, error) {
	dev := new(deviceAttr)
	if err := errnoOf("ibv_query_device", d.Name, d.lib.fn.queryDevice.Call(d.ctx, pointer(dev))); err != nil {
		return nil, err
	}
	runtime.KeepAlive(dev)
	var out []Port
	for n := uint8(1); n <= dev.physPortCnt; n++ {
		a := new(portAttr)
		if err := errnoOf("ibv_query_port", d.Name, d.lib.fn.queryPort.Call(d.ctx, uintptr(n), pointer(a))); err != nil {
			return nil, err
		}
		runtime.KeepAlive(a)
		if a.state != portActive {
			continue
		}
		speed := laneMbps[min(firstBit(int(a.activeSpeed), len(laneMbps)), len(laneMbps)-1)]
		width := laneCount[min(firstBit(int(a.activeWidth), len(laneCount)), len(laneCount)-1)]
		layer := LinkLayer(a.linkLayer)
		if layer != Ethernet {
			layer = InfiniBand
		}
		out = append(out, Port{Device: d.Name, Num: n, Layer: layer, LID: a.lid, MTU: 128 << a.activeMTU,
			Mbps: speed * width, GUID: d.GUID, GIDs: int(a.gidTblLen)})
	}
	return out, nil
}

// GID is a port's address.
type GID [16]byte

// IsV4Mapped tells whether the GID stands for an IPv4 address.
func (g GID) IsV4Mapped() bool {
	for i, b := range g[:12] {
		want := byte(0)
		if i >= 10 {
			want = 0xff
		}
		if b != want {
			return false
		}
	}
	return true
}

// String prints the GID as an IPv6 address.
// String is the GID as an IPv6 address.
func (g GID) String() string { return net.IP(g[:]).String() }

// GID returns entry i of the port's table.
func (d *Device) GID(port uint8, i int) (GID, error) {
	g := new(GID)
	err := errnoOf("ibv_query_gid", d.Name, d.lib.fn.queryGID.Call(d.ctx, uintptr(port), uintptr(i), pointer(g)))
	return *g, err
}

// FindGID picks the GID index as NCCL does without NCCL_IB_GID_INDEX: for RoCE
// the last usable entry of the wanted family and RoCE version 2 (net_ib.cc,
// ncclIbGetGidIndex); for InfiniBand entry 0. roceV reports a table entry's
// RoCE version, 0 where unknown.
func (d *Device) FindGID(p Port, ipv6 bool, roceV func(dev string, port uint8, i int) int) (int, error) {
	if p.Layer == InfiniBand {
		return 0, nil
	}
	best := -1
	for i := 0; i < p.GIDs; i++ {
		g, err := d.GID(p.Num, i)
		if err != nil || g == (GID{}) {
			continue
		}
		linkLocal := g[0] == 0xfe && g[1] == 0x80
		if g.IsV4Mapped() == ipv6 || linkLocal {
			continue
		}
		if v := roceV(d.Name, p.Num, i); best == -1 || v == 2 {
			best = i
		}
	}
	if best == -1 {
		return 0, fmt.Errorf("%s port %d: no GID of the wanted address family; set NCCL_IB_GID_INDEX", d.Name, p.Num)
	}
	return best, nil
}

// mrKey is a registered range.
type mrKey struct {
	addr uintptr
	size int
}

// MR is registered memory.
type MR struct {
	handle     uintptr
	Addr       uintptr
	Len        int
	Lkey, Rkey uint32
	refs       int
}

// Register makes memory known to the NIC, or returns the registration that an
// earlier call made of the same range (NCCL's mr cache works page by page; a
// communicator's buffers are registered whole).
func (d *Device) Register(mem []byte, relaxed bool) (*MR, error) {
	k := mrKey{address(mem), len(mem)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := d.mrs[k]; m != nil {
		m.refs++
		return m, nil
	}
	access := uintptr(accessLocalWrite | accessRemoteWrite | accessRemoteRead)
	if relaxed {
		access |= accessRelaxed
	}
	h, err := object("ibv_reg_mr", d.Name, d.lib.fn.regMR.Call(d.pd, k.addr, uintptr(k.size), access))
	if err != nil && relaxed {
		h, err = object("ibv_reg_mr", d.Name, d.lib.fn.regMR.Call(d.pd, k.addr, uintptr(k.size), access&^accessRelaxed))
	}
	if err != nil {
		return nil, err
	}
	m := &MR{handle: h, Addr: k.addr, Len: k.size, Lkey: peek[uint32](h, offMRLkey), Rkey: peek[uint32](h, offMRRkey), refs: 1}
	d.mrs[k] = m
	return m, nil
}

// Release drops one use of a registration; the last one undoes it.
func (d *Device) Release(m *MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.refs--; m.refs > 0 {
		return nil
	}
	delete(d.mrs, mrKey{m.Addr, m.Len})
	return errnoOf("ibv_dereg_mr", d.Name, d.lib.fn.deregMR.Call(m.handle))
}

// WatchAsync polls the device's asynchronous events without blocking and keeps
// the first fatal one; Err returns it.
func (d *Device) WatchAsync() {
	fd := int(peek[int32](d.ctx, offAsyncFD))
	_ = syscall.SetNonblock(fd, true)
	ev := new([sizeAsyncEvent]byte)
	for int32(d.lib.fn.getAsyncEvent.Call(d.ctx, pointer(ev))) == 0 {
		kind := binary.LittleEndian.Uint32(ev[offEventType:])
		if fatalEvent[kind] && d.asyncErr == nil {
			d.asyncErr = &Error{Verb: "asynchronous event " + cString(d.lib.fn.eventTypeStr.Call(uintptr(kind))), Device: d.Name}
		}
		d.lib.fn.ackAsyncEvent.Call(pointer(ev))
	}
}

// fatalEvent are the events after which the device or a QP is unusable
// (net_ib.cc, ncclIbAsyncThreadMain).
var fatalEvent = map[uint32]bool{0: true, 1: true, 2: true, 3: true, 8: true, 9: true, 15: true}

// Err returns the first fatal asynchronous event, nil without one.
func (d *Device) Err() error { return d.asyncErr }

// Close frees what is left of the device.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for k, m := range d.mrs {
		keep(errnoOf("ibv_dereg_mr", d.Name, d.lib.fn.deregMR.Call(m.handle)))
		delete(d.mrs, k)
	}
	keep(errnoOf("ibv_dealloc_pd", d.Name, d.lib.fn.deallocPD.Call(d.pd)))
	keep(errnoOf("ibv_close_device", d.Name, d.lib.fn.closeDevice.Call(d.ctx)))
	return first
}
