//go:build !linux

package process

func addressLimit() (int64, bool) { return 0, false }
