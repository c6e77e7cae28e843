package bench

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/internal/host"
	"github.com/simccl/simccl/real/internal/nccl"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/trace/chrome"
	tracefile "github.com/simccl/simccl/trace/file"
	nccltrace "github.com/simccl/simccl/trace/nccl"
)

// Trace says where the trace of an operation goes.
type Trace struct {
	File      string      // name for all processes; each inserts its rank before the ending
	Meta      chrome.Meta // without the clock, and the part that belongs to this process
	Detail    nccltrace.Detail
	Cancelled func() error
}

// create opens this process's file.
func (to *Trace) create(t *team.Team, clock string) (*chrome.Writer, error) {
	meta := to.Meta
	meta.Clock = clock
	if t.Several() {
		meta.Part = &chrome.Part{Rank: t.Rank, Of: t.NRanks}
	}
	w, err := tracefile.Create(t.FileName(to.File), chrome.Options{Meta: meta, Cancelled: to.Cancelled})
	return w, team.Input(err)
}

// pluginName is the file name of our profiler plugin, which `make plugin` builds next to simccl.
const pluginName = "libnccl-profiler-simccl.so"

// profiler loads the plugin that records NCCL's own events, if a trace of NCCL's operations is requested. Our
// kernels record their steps themselves.
func (c *DeviceConfig) profiler() (*nccl.Profiler, error) {
	switch {
	case !c.Trace:
		return nil, nil
	case c.Own && c.Algo != "plan" && c.Algo != "auto":
		return nil, &exec.NotImplementedError{Feature: "--trace with --algo " + c.Algo,
			Missing: "steps to show: --algo plan has them"}
	case c.Own:
		return nil, nil
	}
	path := ""
	if exe, err := os.Executable(); err == nil {
		path = filepath.Join(filepath.Dir(exe), pluginName)
	}
	if v, ok := c.Getenv("SIMCCL_PROFILER_PLUGIN"); ok && v != "" {
		path = v
	}
	return nccl.LoadProfiler(path)
}

// settle is the time that NCCL's proxy thread may need to notice that kernels have ended.
const settle = 200 * time.Millisecond

// trace runs the operation twice with all of NCCL's events enabled, and keeps the events of the second run:
// the first one sets up NCCL's monitoring of its kernels, which takes milliseconds. Every process writes its
// own file.
func (g *gpus) trace(ctx context.Context, op *device.Case, to Trace) (*chrome.Writer, error) {
	if g.by != device.NCCL || g.auto {
		return g.traceOwn(op, to)
	}
	if g.events == nil {
		return nil, nil
	}
	one := device.Options{Iters: 1, Warmup: 1}
	g.events.Mask(nccl.AllEvents)
	if _, err := g.session.Measure(ctx, op, device.NCCL, one); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	if err := g.events.Write(os.DevNull); err != nil {
		return nil, err
	}
	one.Warmup = 0
	if _, err := g.session.Measure(ctx, op, device.NCCL, one); err != nil {
		return nil, err
	}
	time.Sleep(settle)
	g.events.Mask(0)
	dir, remove, err := newfile.TempDir("simccl-trace-*")
	if err != nil {
		return nil, err
	}
	defer remove()
	written := filepath.Join(dir, "events.json")
	if err := g.events.Write(written); err != nil {
		return nil, err
	}
	return nil, copyFile(written, g.team.FileName(to.File))
}

// traceOwn runs the operation once more by its plan; the trace has every slice with the times that the
// kernels recorded.
func (g *gpus) traceOwn(op *device.Case, to Trace) (*chrome.Writer, error) {
	one := *op
	var err error
	if one.Plan, err = g.plan(op); err != nil {
		return nil, err
	}
	watched, err := g.session.Watch(&one, 1)
	if err != nil {
		return nil, err
	}
	far := int64(0)
	for _, c := range watched.Clocks {
		far = max(far, c.Error)
	}
	sync, err := clocks(g.team, far)
	if err != nil {
		return nil, err
	}
	w, err := to.create(g.team, fmt.Sprintf("globaltimer of each GPU, tied to the host's clock within %d ns",
		far))
	if err != nil {
		return nil, err
	}
	w.Clock(host.Clock(watched.Epoch), sync)
	watched.WriteTrace(w, nccltrace.Options{Detail: to.Detail})
	return w, nil
}

// copyFile copies a file, compressed if the new name says so.
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
