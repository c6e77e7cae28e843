package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// traceLimit is the option that bounds what a reader of traces keeps in memory.
type traceLimit struct{ text string }

func (l *traceLimit) flag(c *cobra.Command) {
	c.Flags().StringVar(&l.text, "max-memory", "", fmt.Sprintf("`size` of what may be kept of the traces in memory (default %dM, less where the process may take less)", chrome.DefaultMemory>>20))
}

// bytes reads the option.
func (l *traceLimit) bytes() (units.Bytes, error) {
	if l.text == "" {
		return affordable(), nil
	}
	n, err := units.ParseBytes(l.text)
	if err != nil || n < 1 {
		return 0, usage("--max-memory %s: write a size like 384M or 4G", l.text)
	}
	return n, nil
}

// budget is what the option allows.
func (l *traceLimit) budget() (*chrome.Budget, error) {
	n, err := l.bytes()
	return chrome.NewBudget(n), err
}

// affordable is how much a reader of traces may keep. Under a limit on the
// address space (ulimit -v) it is a quarter of the rest: lists that grow are
// there twice, and the collector needs room.
func affordable() units.Bytes {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) != nil || limit.Cur >= 1<<40 {
		return chrome.DefaultMemory
	}
	var pages int64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		_, _ = fmt.Sscan(string(text), &pages) // 0 where it is not there
	}
	left := int64(limit.Cur) - pages*int64(os.Getpagesize())
	debug.SetMemoryLimit(max(64<<20, left*3/4))
	return max(16<<20, min(chrome.DefaultMemory, units.Bytes(left/4)))
}
