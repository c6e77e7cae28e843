//go:build !linux

package cuda

import (
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

var errNoHostMemory = &exec.UnsupportedError{Feature: "host memory between processes", Needs: "Linux",
	Found: "another system"}

// ShareHost exists on Linux only.
func (dev *Device) ShareHost(units.Bytes) (*HostMemory, error) { return nil, errNoHostMemory }

// Handle exists on Linux only.
func (m *HostMemory) Handle() (HostHandle, error) { return HostHandle{}, errNoHostMemory }

// OpenHost exists on Linux only.
func (dev *Device) OpenHost(HostHandle) (*HostMemory, error) { return nil, errNoHostMemory }

// Close exists on Linux only.
func (m *HostMemory) Close() error { return nil }
