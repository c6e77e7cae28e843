//go:build !unix

package verbs

import "errors"

// mapped is zeroed memory of the Go heap: without libibverbs no NIC keeps pointers to it.
func mapped(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapped([]byte) error { return nil }

// ownFile fails: libibverbs and its files are Linux's.
func ownFile(int) (int, error) { return -1, errors.New("this system has no libibverbs") }
