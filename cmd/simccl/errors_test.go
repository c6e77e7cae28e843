package main

import (
	"fmt"
	"net"
	"syscall"
	"testing"
)

// A peer that cannot be reached is the network's failure, no defect.
func TestRefusedConnectionIsTheNetworks(t *testing.T) {
	err := fmt.Errorf("read of 4096 bytes: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	if got := status(err); got != exitNCCL {
		t.Errorf("%v: exit status %d, want %d", err, got, exitNCCL)
	}
	if got := status(fmt.Errorf("an error without a type")); got != exitInternal {
		t.Errorf("exit status %d, want %d", got, exitInternal)
	}
}
