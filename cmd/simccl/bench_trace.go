package main

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	gpubench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/nccl"
)

// pluginName is our profiler plugin as `make plugin` builds it, beside simccl.
const pluginName = "libnccl-profiler-simccl.so"

// profiler loads the plugin that writes NCCL's own events, if a trace is
// wanted; own tells that the operations are not NCCL's.
func (r *benchRun) profiler(own bool) (*nccl.Profiler, error) {
	switch {
	case r.flags.run.out.trace == "":
		return nil, nil
	case own:
		return nil, notYet("--trace with --backend cuda", "times of the kernels' steps; --backend nccl writes a trace")
	}
	path := ""
	if exe, err := os.Executable(); err == nil {
		path = filepath.Join(filepath.Dir(exe), pluginName)
	}
	if v, ok := r.app.getenv("SIMCCL_PROFILER_PLUGIN"); ok && v != "" {
		path = v
	}
	return nccl.LoadProfiler(path)
}

// settle is how long NCCL's proxy thread may take to see that kernels ended.
const settle = 200 * time.Millisecond

// writeTrace runs the last operation twice more with NCCL telling everything,
// and keeps what it told of the second: the first sets up what NCCL needs to
// watch its kernels, which takes milliseconds. Every process writes its file.
func (g *gpuBackend) writeTrace(ctx context.Context, r *benchRun, op *gpubench.Op) error {
	if g.events == nil {
		return nil
	}
	one := gpubench.Options{Iters: 1, Warmup: 1}
	g.events.Mask(nccl.AllEvents)
	if _, err := g.session.Measure(ctx, op, gpubench.NCCL, one); err != nil {
		return err
	}
	time.Sleep(settle)
	if err := g.events.Write(os.DevNull); err != nil {
		return err
	}
	one.Warmup = 0
	if _, err := g.session.Measure(ctx, op, gpubench.NCCL, one); err != nil {
		return err
	}
	time.Sleep(settle)
	g.events.Mask(0)
	name := r.team.fileName(r.app.path(r.flags.run.out.trace))
	if !strings.HasSuffix(name, ".gz") {
		return g.events.Write(name)
	}
	plain := strings.TrimSuffix(name, ".gz")
	if err := g.events.Write(plain); err != nil {
		return err
	}
	return errors.Join(compress(plain, name), os.Remove(plain))
}

func compress(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return input(err)
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	return errors.Join(err, z.Close(), out.Close())
}
