package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/interrupt"
	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
)

// errLeftOver: MaxTime ended before all points were done.
var errLeftOver = fail.Left("points are left; run the same command again")

// Run executes a sweep or one shard of it.
type Run struct {
	Spec    *Spec
	Dir     string
	Options scenario.Options
	// Shard is this one's number among Shards; Shards 0: all.
	Shard, Shards int
	Jobs          int           // points at a time, 0: as many as processors
	MaxTime       time.Duration // 0: none
	Retry         bool          // run points again that failed
	Claim         bool          // take batches that no other process has taken, in place of a shard
	Version, NCCL string        // of the program, and whose rules decide
	// Settings are the NCCL variables from outside the specification, NAME=VALUE by name.
	Settings []string
	Progress func(done, failed, total int)
	files    []Source // that points name, found with the keys
}

// Outcome counts the points of a shard: done before, run now, failed, skipped.
type Outcome struct {
	Points  int // of this shard
	Done    int // before this run
	Ran     int
	Failed  int
	Skipped int // duplicates of a point: their key is another's
}

// job is a point with its key.
type job struct {
	index int
	key   Key
}

// about returns the part of every key that does not depend on the point.
func (r *Run) about() (string, error) {
	c, err := classes()
	return fmt.Sprintf("sweep %d rules %s classes %v settings %q", FormatVersion, r.NCCL, c, r.Settings), err
}

// classes lists the machine classes of this program with their hashes.
func classes() ([]Source, error) {
	var out []Source
	for _, name := range gpu.Names() {
		c, err := gpu.Named(name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(c.Format())
		out = append(out, Source{name, hex.EncodeToString(sum[:])})
	}
	return out, nil
}

// keys returns the points that the conditions keep, with their keys. Points with equal settings have one key;
// the first is kept.
func (r *Run) keys(ctx context.Context) (jobs []job, same int, err error) {
	about, err := r.about()
	if err != nil {
		return nil, 0, err
	}
	k := &keyer{opt: r.Options, about: about, sums: map[string]string{}}
	defer func() { r.files = k.files() }()
	all := make([]keyed, r.Spec.count())
	if err := r.eachKey(ctx, k, all); err != nil {
		return nil, 0, err
	}
	seen := map[Key]bool{}
	for i, p := range all {
		switch {
		case p.err != nil:
			return nil, 0, p.err
		case p.key == "": // where left it out
		case seen[p.key]:
			same++
		default:
			seen[p.key] = true
			jobs = append(jobs, job{i, p.key})
		}
	}
	if len(jobs) == 0 {
		return nil, same, fail.File("%s: no point is left by where", r.Spec.File)
	}
	return jobs, same, nil
}

// keyed is a point's key, or why it has none: a fault, or no key where the conditions
// leave the point out.
type keyed struct {
	key Key
	err error
}

// eachKey finds the keys of all points, on as many processors as the points will take.
func (r *Run) eachKey(ctx context.Context, k *keyer, all []keyed) error {
	const block = 256
	parallel.Each(cmpOr(r.Jobs, runtime.GOMAXPROCS(0)), (len(all)+block-1)/block, func(b int) {
		for i := b * block; i < min((b+1)*block, len(all)) && ctx.Err() == nil; i++ {
			all[i].key, all[i].err = r.keyOf(k, i)
		}
	})
	return ctx.Err()
}

// keyOf returns the key of a point; "" if the conditions exclude it.
func (r *Run) keyOf(k *keyer, i int) (Key, error) {
	p, kept, err := r.Spec.point(i)
	if err != nil {
		return "", fail.Input(err)
	}
	if !kept {
		return "", nil
	}
	if err := r.Spec.check(p); err != nil {
		return "", fail.Input(err)
	}
	key, err := k.key(p)
	var at *fail.FileError
	if p.Network != nil && err != nil && !errors.As(err, &at) {
		return "", fail.Input(r.Spec.misplaced(p, err))
	}
	if err != nil {
		return "", fail.Input(fmt.Errorf("%s: point %s: %w", r.Spec.File, p.labels(), err))
	}
	return key, nil
}

// manifest describes the whole sweep.
func (r *Run) manifest(jobs []job) (*Manifest, error) {
	sorted := make([]Key, len(jobs))
	for i, j := range jobs {
		sorted[i] = j.key
	}
	slices.Sort(sorted)
	h := sha256.New()
	for _, k := range sorted {
		h.Write([]byte(k))
	}
	c, err := classes()
	return &Manifest{Format: FormatVersion, Name: r.Spec.Name, Version: r.Version, NCCL: r.NCCL,
		Points: len(jobs),
		Digest: hex.EncodeToString(h.Sum(nil)), Schema: r.Spec.columns(), Spec: specFile, Classes: c,
		Files:    r.files,
		Settings: r.Settings}, err
}

// Do runs the points of the shard that have no result yet.
func (r *Run) Do(ctx context.Context) (out Outcome, err error) {
	all, same, err := r.keys(ctx)
	if err != nil {
		return out, err
	}
	out.Skipped = same
	m, err := r.manifest(all)
	if err != nil {
		return out, err
	}
	if err := begin(r.Dir, m, r.Spec.Text); err != nil {
		return out, err
	}
	done, err := r.finished(r.Dir)
	if err != nil {
		return out, err
	}
	var left []job
	for _, j := range all {
		if r.Shards > 1 && !r.Claim && j.key.shard(r.Shards) != r.Shard {
			continue
		}
		if out.Points++; done[j.key] {
			out.Done++
			continue
		}
		left = append(left, j)
	}
	if len(left) == 0 {
		return out, nil
	}
	w, err := r.worker(out.Points)
	if err != nil {
		return out, err
	}
	w.done.Store(int64(out.Done))
	err = w.all(ctx, left)
	out.Ran, out.Failed = int(w.ran.Load()), int(w.failed.Load())
	return out, errors.Join(err, w.file.close())
}

// worker opens this process's file of results.
func (r *Run) worker(total int) (*worker, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	file, err := openPart(r.Dir, r.Shard, max(r.Shards, 1), host, os.Getpid())
	return &worker{run: r, file: file, host: host, total: total, sites: map[string]*site{}}, err
}

// finished returns the keys with a result, without Retry also those that failed.
func (r *Run) finished(dir string) (map[Key]bool, error) {
	files, err := parts(dir)
	if err != nil {
		return nil, err
	}
	done := map[Key]bool{}
	for _, f := range files {
		if _, err := read(f, func(l *Line) error {
			done[l.Key] = done[l.Key] || l.Error == "" || !r.Retry
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// worker runs points in parallel and writes their results.
type worker struct {
	run               *Run
	file              *part
	host              string
	total             int
	done, ran, failed atomic.Int64
	mu                sync.Mutex
	sites             map[string]*site // loaded machines, by machineKey
	order             []string         // of sites, the oldest first
}

// site is a machine that several points share.
type site struct {
	once sync.Once
	site *scenario.Site
	bill Bill
	err  error
}

// all runs jobs until they are done, the time is over or the context ends.
func (w *worker) all(ctx context.Context, jobs []job) error {
	workers := min(cmpOr(w.run.Jobs, runtime.GOMAXPROCS(0)), len(jobs))
	f := newFeed(jobs, workers)
	if w.run.MaxTime > 0 {
		f.end = time.Now().Add(w.run.MaxTime)
	}
	if w.run.Claim {
		var err error
		if f.claims, err = newClaims(w.run.Dir); err != nil {
			return err
		}
		defer f.claims.close()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				j, ok := f.next(i)
				if !ok {
					return
				}
				if err := w.one(ctx, j); err != nil {
					cancel(err)
				}
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return f.err
}

func cmpOr(a, b int) int {
	if a > 0 {
		return a
	}
	return b
}

// one runs a point and appends its line. A point that fails is a line, too; one that
// was interrupted is none.
func (w *worker) one(ctx context.Context, j job) error {
	p, _, err := w.run.Spec.point(j.index)
	if err != nil {
		return err
	}
	before := now()
	res, err := w.simulate(ctx, p)
	if ctx.Err() != nil || interrupt.Of(ctx) != nil {
		return context.Cause(ctx)
	}
	l := Line{Key: j.key, Point: p.labels(), Version: w.run.Version, Host: w.host, PID: os.Getpid()}
	l.CPU = before.until(now()).Seconds()
	if err != nil {
		l.Error = err.Error()
		w.failed.Add(1)
	} else if l.Result, err = json.Marshal(res); err != nil {
		return err
	}
	if err := w.file.add(&l); err != nil {
		return err
	}
	w.ran.Add(1)
	if n := w.done.Add(1); w.run.Progress != nil {
		w.run.Progress(int(n), int(w.failed.Load()), w.total)
	}
	return nil
}

// maxSites is the largest number of machines that are kept loaded.
const maxSites = 32

// simulate runs a point on a machine that is loaded once for all points that share it.
func (w *worker) simulate(ctx context.Context, p *Point) (any, error) {
	if p.Network != nil {
		return w.run.packets(ctx, p.Network.Clone())
	}
	s := &p.Spec
	if err := s.Validate(); err != nil {
		return nil, err
	}
	at, err := w.machine(s)
	if err != nil {
		return nil, err
	}
	opt := w.run.Options
	opt.Workers = 1 // points run in parallel, not parts of one
	if s.Workload.IsJob() {
		return runJob(ctx, at.site, s, opt, at.bill)
	}
	res, err := scenario.RunOn(ctx, at.site, *s, opt)
	if err != nil {
		return nil, err
	}
	return summary(res, at.bill), nil
}

// machineKey names a machine: points of one key share it.
func machineKey(s *scenario.Spec) (string, error) {
	about, err := json.Marshal([]any{s.Machine, s.NCCL, s.Network})
	return string(about), err
}

// machine returns the machine of a point, which is loaded once.
func (w *worker) machine(s *scenario.Spec) (*site, error) {
	about, err := machineKey(s)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	at := w.sites[about]
	if at == nil {
		at = &site{}
		w.sites[about] = at
		if w.order = append(w.order, about); len(w.order) > maxSites {
			delete(w.sites, w.order[0])
			w.order = w.order[1:]
		}
	}
	w.mu.Unlock()
	opt := w.run.Options
	opt.Workers = 1
	at.once.Do(func() {
		if at.site, at.err = scenario.Load(s, opt); at.err == nil {
			at.bill = billOf(at.site)
		}
	})
	return at, at.err
}
