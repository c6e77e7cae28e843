// Package intercept runs a program on a virtual cluster: it builds the libraries that
// the program loads in place of NCCL and CUDA's runtime, starts the collector that
// they send its calls to, runs the program, and returns the record of its calls.
//
// What it must not know: flags, how a record is shown.
package intercept

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/intercept/collector"
	"github.com/simccl/simccl/intercept/shim"
	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/calls"
)

// NCCL is the version that programs see.
const NCCL = "2.28.9"

// Options configure an interception.
type Options struct {
	collector.Settings
	Command []string
	Dir     string   // of the program
	Env     []string // of the program
	Beside  string   // folder of simccl's own program
	Cache   string   // where libraries are built
	CC      string   // the C compiler
	// Audit redirects libraries that the program opens by their path, too.
	Audit bool
	// Factor scales the processor time of threads under collector.Measured; 0 for 1.
	Factor float64
	// Limit is how long no thread of a program that waits may ask anything.
	Limit time.Duration
	// Reports is called every Every of a run, where that is above 0.
	Every          time.Duration
	Reports        func(Progress)
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Progress is how far a program is.
type Progress struct {
	Since   time.Duration
	Calls   int // 0 under collector.Record, which knows them at the end
	Procs   int
	Elapsed units.Time
}

// Result is what became of a program.
type Result struct {
	Record  *calls.Record
	Calls   int
	Procs   int // processes that have used NCCL or the substitute for CUDA
	Faults  int
	Elapsed units.Time // the latest clock of any process
	Exit    int        // its exit status, 128 and more for a signal
}

// DefaultLimit is Options.Limit where that is 0.
const DefaultLimit = 60 * time.Second

// Run runs a program. Errors are *RefusedError, *RecordError, *shim.Error and those of files; that
// the program fails is no error.
func Run(ctx context.Context, o Options) (*Result, error) {
	path, err := o.find()
	if err != nil {
		return nil, err
	}
	runtime, err := o.check(path)
	if err != nil {
		return nil, err
	}
	libs, err := shim.Folder(o.Beside, o.Cache, o.CC)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "simccl-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	folder, err := os.OpenRoot(dir) // whatever the program does to its name
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		return nil, fmt.Errorf("the collector's socket: %w; set TMPDIR to a folder with a short path", err)
	}
	door, err := newDoor(o.shows())
	if err != nil {
		return nil, err
	}
	defer door.close()
	o.Know = door.know
	core := collector.New(ctx, o.Settings)
	stop := make(chan struct{})
	served := make(chan error, 1)
	go func() { served <- core.Serve(l) }()
	limit := cmp.Or(o.Limit, DefaultLimit)
	go core.Watch(stop, limit)
	reported := make(chan struct{})
	go func() { defer close(reported); o.report(core, stop) }()
	moved, err := o.mover(ctx, core, door, dir, libs)
	if err != nil {
		close(stop)
		return nil, err
	}
	exit, err := o.run(ctx, door, path, dir, libs, runtime)
	moved()
	close(stop)
	<-reported
	l.Close()
	if err := errors.Join(err, <-served); err != nil {
		return nil, err
	}
	if o.Clock == collector.Record {
		if err := feed(core, folder); err != nil {
			return nil, err
		}
	}
	core.Unpaired()
	return &Result{Record: core.Result(NCCL), Calls: core.Calls(), Procs: core.Processes(),
		Faults: core.Faults(), Elapsed: core.Elapsed(), Exit: exit}, nil
}

// shows reports whether programs show the collector their memory, in which it moves data.
func (o *Options) shows() bool { return o.Data && !o.Live() }

// report says how far the program is.
func (o *Options) report(core *collector.Core, stop <-chan struct{}) {
	if o.Every <= 0 || o.Reports == nil {
		return
	}
	begun, tick := time.Now(), time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			o.Reports(Progress{time.Since(begun), core.Calls(), core.Processes(), core.Elapsed()})
		}
	}
}

// find is the program's file.
func (o *Options) find() (string, error) {
	name := o.Command[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Dir, name)
		}
		return filepath.Abs(name)
	}
	return exec.LookPath(name)
}

// check refuses a command that cannot be intercepted, and names the library of CUDA's
// runtime that its program is linked with. A launcher's arguments name the program.
func (o *Options) check(path string) (runtime string, err error) {
	for i, name := range o.Command {
		if i == 0 {
			name = path
		} else if !filepath.IsAbs(name) {
			name = filepath.Join(o.Dir, name)
		}
		info, err := os.Stat(name)
		if i > 0 && (err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0) {
			continue
		}
		b, err := inspect(name)
		if err != nil && i > 0 {
			continue
		}
		if err == nil {
			err = b.check(name, o.Devices == collector.Pretend)
		}
		if err != nil {
			return "", err
		}
		if runtime == "" {
			runtime = b.cudart()
		}
	}
	return runtime, nil
}

func (o *Options) run(ctx context.Context, d *door, path, dir, libs, runtime string) (int, error) {
	c := exec.CommandContext(ctx, path, o.Command[1:]...)
	c.Args[0] = o.Command[0]
	c.Dir, c.Stdin, c.Stdout, c.Stderr = o.Dir, o.Stdin, o.Stdout, o.Stderr
	c.Env = o.environment(dir, libs, runtime)
	// A program that was ended may have left children that hold its output.
	c.WaitDelay = 5 * time.Second
	err := d.start(c)
	if err == nil {
		err = c.Wait()
	}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case errors.As(err, &ended):
		if code := ended.ExitCode(); code >= 0 {
			return code, nil
		}
		return 128 + signalOf(ended), nil
	case errors.Is(err, exec.ErrWaitDelay):
		return 0, nil
	}
	return 0, err
}

// mover starts the process that moves the data of real GPUs; the result ends it.
func (o *Options) mover(ctx context.Context, core *collector.Core, d *door, dir, libs string) (end func(),
	err error) {
	if !o.Data || !o.Live() {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	c := exec.CommandContext(ctx, filepath.Join(libs, shim.Mover))
	var said bytes.Buffer
	c.Stderr = &said
	c.Env = append(slices.DeleteFunc(slices.Clone(o.Env), func(kv string) bool {
		return strings.HasPrefix(kv, "LD_PRELOAD=") || strings.HasPrefix(kv, "LD_AUDIT=")
	}), "SIMCCL_INTERCEPT="+dir)
	start := func() (int, error) {
		if err := d.start(c); err != nil {
			return 0, err
		}
		return c.Process.Pid, nil
	}
	if err := core.StartMover(start); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		err := c.Wait()
		if ctx.Err() == nil {
			core.NoMover(fmt.Sprintf("the process that moves data has ended: %v: %s", err,
				strings.TrimSpace(said.String())))
		}
		close(ended)
	}()
	return func() { cancel(); <-ended }, nil
}

// manyRanks is up to how many ranks of the virtual cluster each process may have all 32
// queues of CUDA: contexts of 64 processes on one H200 found no memory for theirs.
const manyRanks = 16

// environment has the program find the libraries and the collector.
func (o *Options) environment(dir, libs, runtime string) []string {
	preload := []string{filepath.Join(libs, shim.Core), filepath.Join(libs, shim.NCCL)}
	set := map[string]string{"SIMCCL_INTERCEPT": dir, "SIMCCL_SHIM": libs}
	if o.Devices == collector.Pretend {
		// Symbols of the runtimes have versions, so a program finds those of its own
		// among several; one that asks for no version finds the first.
		for _, name := range append([]string{runtime}, shim.Runtimes[1], shim.Runtimes[2], shim.Runtimes[0]) {
			if at := filepath.Join(libs, name); slices.Contains(shim.Runtimes, name) &&
				!slices.Contains(preload, at) {
				preload = append(preload, at)
			}
		}
	} else {
		set["SIMCCL_SHIM_NCCL_ONLY"] = "1"
		if o.Live() {
			preload = append(preload, filepath.Join(libs, shim.Live))
			if o.GPUs <= manyRanks {
				// A stream that waits holds up those that share a queue of CUDA's with it.
				set["CUDA_DEVICE_MAX_CONNECTIONS"] = "32"
			}
		}
	}
	if host, err := os.Hostname(); err == nil {
		set["SIMCCL_INTERCEPT_HOST"] = host
	}
	if o.shows() {
		set["SIMCCL_INTERCEPT_DATA"] = "1"
	}
	if o.Factor > 0 {
		set["SIMCCL_HOST_FACTOR"] = strconv.FormatFloat(o.Factor, 'g', -1, 64)
	}
	if o.Audit {
		set["LD_AUDIT"] = filepath.Join(libs, shim.Audit)
	}
	set["LD_PRELOAD"] = strings.Join(preload, ":")
	if o.Devices != collector.Real {
		set["LD_LIBRARY_PATH"] = libs
	}
	var out []string
	for _, kv := range o.Env {
		name, old, _ := strings.Cut(kv, "=")
		v, ok := set[name]
		switch {
		case !ok:
			out = append(out, kv)
		case old != "" && (name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH" || name == "LD_AUDIT"):
			set[name] = v + ":" + old
		}
	}
	for _, name := range []string{"CUDA_DEVICE_MAX_CONNECTIONS", "SIMCCL_INTERCEPT", "SIMCCL_INTERCEPT_DATA",
		"SIMCCL_SHIM", "SIMCCL_INTERCEPT_HOST", "SIMCCL_SHIM_NCCL_ONLY", "SIMCCL_HOST_FACTOR", "LD_AUDIT",
		"LD_PRELOAD", "LD_LIBRARY_PATH"} {
		if v, ok := set[name]; ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// maxRecord bounds the file of a process's record, which is read piece by piece.
const maxRecord = 1 << 32

// RecordError is a record that a program left and that is none: its folder is the program's to write.
type RecordError struct {
	PID     int
	Problem error
}

// Error names the process, and what is wrong.
func (e *RecordError) Error() string {
	return fmt.Sprintf("the record of process %d (--time record): %v; a program leaves the files of its "+
		"folder SIMCCL_INTERCEPT alone", e.PID, e.Problem)
}

// Unwrap is what is wrong.
func (e *RecordError) Unwrap() error { return e.Problem }

// feed gives the collector the records that processes wrote.
func feed(core *collector.Core, dir *os.Root) error {
	files, err := fs.Glob(dir.FS(), "record.*")
	if err != nil {
		return err
	}
	slices.SortFunc(files, func(a, b string) int { return pidOf(a) - pidOf(b) })
	for _, name := range files {
		if err := feedOne(core, dir, name); err != nil {
			return &RecordError{pidOf(name), err}
		}
	}
	core.Unmatched()
	return nil
}

// feedOne reads a record. What the program has left there is looked at before it is opened, and
// opened so that no pipe is waited for.
func feedOne(core *collector.Core, dir *os.Root, name string) error {
	before, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !before.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file (%v)", before.Mode())
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !os.SameFile(before, info):
		return errors.New("it was replaced while it was opened")
	case info.Size() > maxRecord:
		return &bounded.TooLargeError{Name: name, Limit: maxRecord, Size: info.Size()}
	}
	return core.Feed(pidOf(name), f, info.Size())
}

func pidOf(file string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Ext(file), "."))
	return n
}
