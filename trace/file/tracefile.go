// Package file writes traces and profiles to files that appear complete or not at all.
package file

import (
	"fmt"
	"path/filepath"

	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/trace/chrome"
)

// Create returns a Writer of a trace to a file, compressed if its name ends in .gz. The file appears under
// its name only if Close succeeds.
func Create(path string, opt chrome.Options) (*chrome.Writer, error) {
	file, err := newfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create trace: %w", err)
	}
	if opt.Spool == nil {
		opt.Spool = func() (chrome.Spool, error) { return Scratch(filepath.Dir(path)) }
	}
	return chrome.To(file, path, opt), nil
}

// Scratch returns a nameless temporary file in a directory, removed when it is closed.
func Scratch(dir string) (chrome.Spool, error) {
	f, err := newfile.Scratch(dir)
	if err != nil {
		return nil, err
	}
	return f, nil
}
