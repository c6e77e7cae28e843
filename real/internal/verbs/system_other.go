//go:build !unix

package verbs

import "errors"

// mapped returns zeroed memory of the Go heap: without libibverbs no NIC stores pointers to it.
func mapped(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapped([]byte) error { return nil }

// ownFile returns an error: libibverbs and its files exist on Linux only.
func ownFile(int) (int, error) { return -1, errors.New("this system has no libibverbs") }
