package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// Limits on what is read of an input, far above what one has.
const (
	maxTopology = topoxml.MaxBytes // the parser's own
	maxNetwork  = fabric.MaxBytes  // the same
	maxClass    = 1 << 20
	maxResults  = 64 << 20 // tables and JSON of nccl-tests, decision documents
	maxSettings = 64 << 10 // configuration files and option lists
)

// read reads an input file that an option or argument names, up to limit bytes. It
// ends when the command is interrupted, also where it waits for a pipe.
func (a *app) read(name string, limit int64) ([]byte, error) {
	data, err := readFile(a.context(), a.path(name), limit)
	var large *bounded.TooLargeError
	switch {
	case errors.As(err, &large):
		large.Name = name
		return nil, input(err)
	case errors.Is(err, context.Canceled):
		return nil, err
	}
	return data, input(err)
}

// readFile reads a file up to limit bytes; it ends when ctx does.
func readFile(ctx context.Context, path string, limit int64) ([]byte, error) {
	return bounded.ReadFile(ctx, path, limit, func() (fs.File, error) { return os.Open(path) })
}

// context is the command's, which the first interrupt ends.
func (a *app) context() context.Context {
	if a.ctx == nil {
		return context.Background()
	}
	return a.ctx
}

// cancelled is what the stages poll: nil to continue.
func (a *app) cancelled() error { return a.context().Err() }
