//go:build linux && (amd64 || arm64)

// Package realtest provides hardware, or a substitute, to tests: the RDMA devices of this machine, and a CUDA
// driver of the kernels compiled for the CPU (driver.cu). That moves real data with the same sources that
// GPUs run, and fails where a test requests it.
package realtest

import (
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/real/internal/ibv"
	"github.com/simccl/simccl/real/internal/verbs"
)

// FakeDriver returns the directory of a CUDA driver whose GPUs are memory of this computer, for
// LD_LIBRARY_PATH. Without a C++ compiler the test is skipped.
func FakeDriver(t testing.TB) string {
	t.Helper()
	return filepath.Dir(Library(t))
}

// NeedRDMA skips a test on a machine without RDMA.
func NeedRDMA(t testing.TB) {
	t.Helper()
	n, err := ibv.NewNet(netcfg.IB{})
	require.Hardware(t, "ib", err, exec.ErrUnsupported)
	n.Close()
}

// Device is an RDMA device as libibverbs describes it.
type Device struct {
	Name  string
	GUID  uint64
	MaxQP int
	Ports []Port
}

// Port is a port of a device; Mbps is its rate.
type Port struct{ Num, Mbps int }

// RDMA lists this machine's RDMA devices; the test is skipped if there are none.
func RDMA(t testing.TB) []Device {
	t.Helper()
	lib, err := verbs.Open()
	require.Hardware(t, "ib", err, exec.ErrUnsupported)
	names, err := lib.DeviceNames()
	require.Hardware(t, "ib", err, exec.ErrUnsupported)
	var out []Device
	for _, name := range names {
		d, err := lib.OpenDevice(name)
		if err != nil {
			t.Fatal(err)
		}
		ports, err := d.Ports()
		if err != nil {
			t.Fatal(err)
		}
		dev := Device{Name: name, GUID: d.GUID, MaxQP: d.MaxQP}
		for _, p := range ports {
			dev.Ports = append(dev.Ports, Port{int(p.Num), int(p.Mbps)})
		}
		d.Close()
		out = append(out, dev)
	}
	return out
}
