//go:build !linux

package cuda

import (
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

var errNoHostMemory = &exec.UnsupportedError{Feature: "host memory between processes", Needs: "Linux",
	Found: "another system"}

// ShareHost returns an error: it exists on Linux only.
func (dev *Device) ShareHost(units.Bytes) (*HostMemory, error) { return nil, errNoHostMemory }

// Handle returns an error: it exists on Linux only.
func (m *HostMemory) Handle() (HostHandle, error) { return HostHandle{}, errNoHostMemory }

// OpenHost returns an error: it exists on Linux only.
func (dev *Device) OpenHost(HostHandle) (*HostMemory, error) { return nil, errNoHostMemory }

// Close does nothing.
func (m *HostMemory) Close() error { return nil }
