package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/internal/newfile"
	gpubench "github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/host"
	"github.com/simccl/simccl/real/nccl"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccltrace"
)

// pluginName is our profiler plugin as `make plugin` builds it, beside simccl.
const pluginName = "libnccl-profiler-simccl.so"

// profiler loads the plugin that writes NCCL's own events, if a trace is
// wanted; own tells that the operations are not NCCL's.
func (r *benchRun) profiler(own bool) (*nccl.Profiler, error) {
	switch {
	case r.flags.run.out.trace == "":
		return nil, nil
	case own && r.flags.gpu.algo != "plan" && r.flags.gpu.algo != "auto":
		return nil, notYet("--trace with --algo "+r.flags.gpu.algo, "steps to show: --algo plan has them")
	case own:
		return nil, nil // our kernels note their steps themselves
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
	if r.flags.run.out.trace != "" && (g.by != gpubench.NCCL || g.auto) {
		return g.writeOwn(r, op)
	}
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
	dir, remove, err := newfile.TempDir("simccl-trace-*")
	if err != nil {
		return err
	}
	defer remove()
	told := filepath.Join(dir, "told.json")
	if err := g.events.Write(told); err != nil {
		return err
	}
	to := r.team.fileName(r.app.path(r.flags.run.out.trace))
	if err := copyFile(told, to); err != nil {
		return err
	}
	r.app.wrote(to, openTrace)
	return nil
}

// writeOwn runs the last operation once more by its plan, every slice with the
// times that the kernels saw.
func (g *gpuBackend) writeOwn(r *benchRun, op *gpubench.Op) error {
	pl, err := g.plans.plan(op)
	if err != nil {
		return err
	}
	one := *op
	one.Plan = pl
	w, err := g.session.Watch(&one, 1)
	if err != nil {
		return err
	}
	far := int64(0)
	for _, c := range w.Clocks {
		far = max(far, c.Error)
	}
	meta := chrome.Meta{Source: "real", Version: version, NCCLRules: ncclRules, Seed: 1,
		Clock: fmt.Sprintf("globaltimer of each GPU, tied to the host's clock within %d ns", far)}
	sync, err := r.team.clocks(far)
	if err != nil {
		return err
	}
	if sync != nil {
		meta.Part = &chrome.Part{Rank: r.team.rank, Of: r.team.nranks}
	}
	name := r.team.fileName(r.app.path(r.flags.run.out.trace))
	out, err := chrome.Create(name, chrome.Options{Meta: meta, Cancelled: r.app.cancelled})
	if err != nil {
		return input(err)
	}
	out.Clock(host.Clock(w.Epoch), sync)
	w.Tell(out, nccltrace.Options{Detail: nccltrace.Detail(slices.Index(nccltrace.Details[:], r.flags.run.out.detail))})
	return r.app.closeTrace(name, out)
}

// copyFile copies a file, compressed where the new name says so.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	file, err := newfile.Create(to)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(to, ".gz") {
		_, err = io.Copy(file, in)
		return file.Finish(err)
	}
	z := gzip.NewWriter(file)
	_, err = io.Copy(z, in)
	if e := z.Close(); err == nil {
		err = e
	}
	return file.Finish(err)
}
