package real

import "github.com/simccl/simccl/real/internal/verbs"

// RDMADevice is the information about a device that libibverbs has and sysfs lacks.
type RDMADevice struct {
	Name   string
	MaxQP  int
	DMABuf bool
}

// RDMADevices lists the RDMA devices of this machine. left holds one error for each device that could not be
// queried; err is an *exec.UnsupportedError if libibverbs is missing.
func RDMADevices() (devices []RDMADevice, left []error, err error) {
	lib, err := verbs.Open()
	if err != nil {
		return nil, nil, err
	}
	names, err := lib.DeviceNames()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		d, err := lib.OpenDevice(name)
		if err != nil { // NCCL omits it too (net_ib.cc:715)
			left = append(left, err)
			continue
		}
		devices = append(devices, RDMADevice{Name: name, MaxQP: d.MaxQP, DMABuf: d.DMABuf()})
		d.Close()
	}
	return devices, left, nil
}
