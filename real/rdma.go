package real

import "github.com/simccl/simccl/real/internal/verbs"

// RDMADevice is what libibverbs says of a device and sysfs does not.
type RDMADevice struct {
	Name   string
	MaxQP  int
	DMABuf bool
}

// RDMADevices lists the devices of this machine. left is why some are not among
// them, one error a device; err is an *exec.UnsupportedError where libibverbs
// cannot be asked.
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
		if err != nil { // NCCL leaves it out too (net_ib.cc:715)
			left = append(left, err)
			continue
		}
		devices = append(devices, RDMADevice{Name: name, MaxQP: d.MaxQP, DMABuf: d.DMABuf()})
		d.Close()
	}
	return devices, left, nil
}
