// Package tracefile writes traces and profiles to files of this machine, which
// appear under their names only when they are whole.
package tracefile

import (
	"fmt"
	"path/filepath"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/profile"
)

// Chrome returns a writer to a Chrome trace, compressed if the name ends in .gz.
// Its spool is a nameless file beside it unless opt has another.
func Chrome(path string, opt chrome.Options) (*chrome.Writer, error) {
	file, err := newfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create trace: %w", err)
	}
	if opt.Spool == nil {
		opt.Spool = func() (chrome.Spool, error) { return newfile.Scratch(filepath.Dir(path)) }
	}
	return chrome.To(file, path, opt), nil
}

// Profile returns a writer to a pprof profile.
func Profile(path string, opt profile.Options) (*profile.Writer, error) {
	file, err := newfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create profile: %w", err)
	}
	return profile.To(file, path, opt), nil
}
