// Package verbs calls libibverbs.so.1, opened at run time: devices, ports and their addresses, memory
// registrations, completion queues and queue pairs, with the attributes that NCCL 2.28.9 gives them. It knows
// no net plugin and no message. NCCL counterpart: misc/ibvwrap.cc, and transport/net_ib.cc where it sets
// attributes.
package verbs

import (
	"fmt"
	"runtime"
	"syscall"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/dl"
)

// Error reports a failed verb, with the device and the kernel's errno or a reason.
type Error struct {
	Verb   string
	Device string
	Errno  syscall.Errno
	Detail string
}

func (e *Error) Error() string {
	s := e.Verb
	if e.Device != "" {
		s += " on " + e.Device
	}
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	if e.Errno == 0 {
		return s + ": failed"
	}
	return s + ": " + e.Errno.Error()
}

// CompletionError is a work completion with a bad status.
type CompletionError struct {
	Verb   string // the posted operation
	Status uint32
	Text   string // ibv_wc_status_str
	Device string
	QP     uint32
	Peer   string
	Vendor uint32
	Notice string // the device's last event that was not fatal, which may explain the error
}

func (e *CompletionError) Error() string {
	s := fmt.Sprintf("%s on %s QP %d to %s: %s (status %d, vendor 0x%x)", e.Verb, e.Device, e.QP, e.Peer,
		e.Text, e.Status, e.Vendor)
	if e.Notice != "" {
		s += "; the device reported before: " + e.Notice
	}
	return s
}

// Lib is the open libibverbs with the functions used.
type Lib struct {
	lib *dl.Lib
	fn  procs
}

type procs struct {
	getDeviceList, freeDeviceList, getDeviceName, openDevice, closeDevice,
	queryDevice, queryPort, queryGID, allocPD, deallocPD, regMR, deregMR,
	createCQ, destroyCQ, createQP, modifyQP, destroyQP,
	getAsyncEvent, ackAsyncEvent, wcStatusStr, eventTypeStr dl.Proc
	// Of newer libraries; 0 if missing.
	regMRIova2, regDMABuf, queryECE, setECE dl.Proc
}

func (p *procs) table() map[string]*dl.Proc {
	return map[string]*dl.Proc{
		"ibv_get_device_list": &p.getDeviceList, "ibv_free_device_list": &p.freeDeviceList,
		"ibv_get_device_name": &p.getDeviceName,
		"ibv_open_device":     &p.openDevice, "ibv_close_device": &p.closeDevice,
		"ibv_query_device": &p.queryDevice, "ibv_query_port": &p.queryPort, "ibv_query_gid": &p.queryGID,
		"ibv_alloc_pd": &p.allocPD, "ibv_dealloc_pd": &p.deallocPD,
		"ibv_reg_mr": &p.regMR, "ibv_dereg_mr": &p.deregMR,
		"ibv_create_cq": &p.createCQ, "ibv_destroy_cq": &p.destroyCQ,
		"ibv_create_qp": &p.createQP, "ibv_modify_qp": &p.modifyQP, "ibv_destroy_qp": &p.destroyQP,
		"ibv_get_async_event": &p.getAsyncEvent, "ibv_ack_async_event": &p.ackAsyncEvent,
		"ibv_wc_status_str": &p.wcStatusStr, "ibv_event_type_str": &p.eventTypeStr,
	}
}

// Feature is the feature that errors name if libibverbs or a device is missing.
const Feature = "InfiniBand verbs"

// Open loads libibverbs.
func Open() (*Lib, error) {
	lib, err := dl.Open(Feature, "libibverbs.so.1")
	if err != nil {
		return nil, err
	}
	l := &Lib{lib: lib}
	if err := lib.Bind(Feature, l.fn.table()); err != nil {
		return nil, err
	}
	// Each separately: a library may have one and not another.
	for name, p := range map[string]*dl.Proc{"ibv_reg_mr_iova2": &l.fn.regMRIova2,
		"ibv_reg_dmabuf_mr": &l.fn.regDMABuf,
		"ibv_query_ece":     &l.fn.queryECE, "ibv_set_ece": &l.fn.setECE} {
		_ = lib.Bind(Feature, map[string]*dl.Proc{name: p})
	}
	return l, nil
}

// errnoOf converts the result of a verb that returns an errno.
func errnoOf(verb, dev string, r uintptr) error {
	n := int32(r)
	if n == 0 {
		return nil
	}
	if n < 0 {
		n = -n
	}
	return &Error{Verb: verb, Device: dev, Errno: syscall.Errno(n)}
}

// object checks the result of a verb that returns a pointer; 0 is an error.
func object(verb, dev string, r uintptr) (uintptr, error) {
	if r == 0 {
		return 0, &Error{Verb: verb, Device: dev,
			Detail: "no object; the kernel's limits or permissions (ulimit -l) are the usual cause"}
	}
	return r, nil
}

// CanRelax reports whether the library can register memory with relaxed ordering of PCI writes.
func (l *Lib) CanRelax() bool { return l.fn.regMRIova2 != 0 }

// DeviceNames lists the RDMA devices of the machine. Error: *exec.UnsupportedError if there are none.
func (l *Lib) DeviceNames() ([]string, error) {
	var names []string
	err := l.each(func(dev uintptr, name string) error {
		names = append(names, name)
		return nil
	})
	if err == nil && len(names) == 0 {
		err = &exec.UnsupportedError{Feature: Feature, Needs: "an RDMA device",
			Found: "the kernel lists none"}
	}
	return names, err
}

func (l *Lib) each(f func(dev uintptr, name string) error) error {
	n := new(int32)
	list := l.fn.getDeviceList.Call(Pointer(n))
	runtime.KeepAlive(n)
	if list == 0 {
		return &exec.UnsupportedError{Feature: Feature, Needs: "the kernel's RDMA support",
			Found: "ibv_get_device_list gives none"}
	}
	defer l.fn.freeDeviceList.Call(list)
	for i := range int(*n) {
		dev := peek[uintptr](list, 8*i)
		if err := f(dev, dl.String(l.fn.getDeviceName.Call(dev))); err != nil {
			return err
		}
	}
	return nil
}
