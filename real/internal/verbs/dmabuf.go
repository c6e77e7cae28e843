package verbs

import "syscall"

// DMABuf reports whether the device can register DMA-BUF memory: given an invalid descriptor, it must
// complain about that and not about the call (net_ib.cc:885).
func (d *Device) DMABuf() bool {
	reg := d.lib.fn.regDMABuf
	if reg == 0 {
		return false
	}
	const none = ^uintptr(0) // descriptor -1
	_, errno := reg.CallErrno(d.pd, 0, 0, 0, none, 0)
	return errno != syscall.EOPNOTSUPP && errno != syscall.EPROTONOSUPPORT
}
