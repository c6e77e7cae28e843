// Package web answers the calls of the web page: machines, decisions, times,
// timelines and files as JSON, from a Spec and the files that the page holds.
//
// What it must not know: the browser, and how answers are shown.
package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
)

// Service holds the files of a page and the machines that it looked at last. Calls
// may overlap.
type Service struct {
	program string // its version, for what is written

	mu    sync.Mutex
	files files
	sites []*loaded // the last used first
}

// loaded is a machine that is kept, by what it is made of.
type loaded struct {
	key      string
	ready    chan struct{} // is closed once site or err is there
	site     *scenario.Site
	err      error
	warnings []string

	mu  sync.Mutex
	now []*call // those that use it, and some that ended; never changed, only replaced
}

// call is a call's context, until the call has ended.
type call struct {
	context.Context
	ended atomic.Bool
}

// Err is that of the context: it passes on the poll.
func (c *call) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return c.Context.Err()
}

// use adds a call to those for whose sake the machine's stages go on.
func (x *loaded) use(ctx context.Context) {
	c, ok := ctx.(*call)
	if !ok {
		c = &call{Context: ctx}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	now := []*call{c}
	for _, o := range x.now {
		if o != c && !o.ended.Load() {
			now = append(now, o)
		}
	}
	x.now = now
}

// cancelled is polled by the machine's stages; it returns nil as long as one of the calls that wait for them
// goes on. The end of one call must not end another's work.
func (x *loaded) cancelled() error {
	x.mu.Lock()
	now := x.now
	x.mu.Unlock()
	var err error
	for _, c := range now {
		if err = c.Err(); err == nil {
			return nil
		}
	}
	return err
}

var errLoading = errors.New("the machine was not loaded: simccl has a bug there")

// keptSites is how many machines are kept: the one that is shown, that of a what-if,
// and the one before each.
const keptSites = 4

// New is a Service without files. program is the version that it names in files.
func New(program string) *Service { return &Service{program: program, files: files{}} }

// Emit passes on parts of an answer, values that become JSON, before its end.
type Emit func(part any)

// Query is a call's parameters. A method ignores the members that it does not read.
type Query struct {
	Spec scenario.Spec `json:"spec"`
	// Other is the second Spec of a comparison.
	Other *scenario.Spec `json:"other,omitempty"`
	// Size is one size, in bytes or as "1M"; empty: the last of the Spec.
	Size string `json:"size,omitempty"`
	// Name is a file that the page holds.
	Name string `json:"name,omitempty"`
	// Names are files that belong together, of a job.
	Names []string `json:"names,omitempty"`
	// Gbps is the speed of every NIC of a machine, in Gb/s.
	Gbps float64 `json:"gbps,omitempty"`
}

// File is bytes with the name under which the page offers them.
type File struct {
	Name, Type string
	Data       []byte
}

type method func(*Service, context.Context, *Query, Emit) (any, error)

var methods = map[string]method{
	"hello": (*Service).hello, "recognise": (*Service).recognise, "machine": (*Service).machine,
	"model": (*Service).model, "run": (*Service).run,
	"explain": (*Service).explain, "compare": (*Service).compare, "advise": (*Service).advise,
	"timeline": (*Service).timeline, "open": (*Service).open,
	"job": (*Service).job, "trace": (*Service).trace, "report": (*Service).report,
	"scenario": (*Service).scenario, "nics": (*Service).nics, "topology": (*Service).topology,
	"congestion": (*Service).congestion,
}

// Call answers one call. The answer is a value that becomes JSON, or a *File. A bug
// below ends the call, not the page.
func (s *Service) Call(ctx context.Context, name string, query []byte, emit Emit) (out any, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("%s: simccl has a bug here: %v", name, r)
		}
	}()
	m := methods[name]
	if m == nil {
		return nil, fail.Usage("%q is no call", name)
	}
	var q Query
	d := json.NewDecoder(bytes.NewReader(query))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return nil, fail.Usage("%s: %v", name, err)
	}
	c := &call{Context: ctx}
	defer c.ended.Store(true)
	return m(s, c, &q, emit)
}

// Failure is an error as the page shows it.
type Failure struct {
	Error     string `json:"error"`
	Path      string `json:"path,omitempty"` // the member of the Spec
	Cancelled bool   `json:"cancelled,omitempty"`
}

// Failed makes a Failure of an error.
func Failed(err error) Failure {
	f := Failure{Error: err.Error(), Cancelled: errors.Is(err, context.Canceled)}
	var field *scenario.FieldError
	var setting *config.Error
	var file *scenario.InputError
	var machine *sim.ConfigError
	switch {
	case errors.As(err, &field):
		f.Path = field.Path
	case errors.As(err, &setting):
		f.Path = "nccl.env"
	case errors.As(err, &machine) && machine.Field == "Faults":
		f.Path = "network.faults"
	case errors.As(err, &file):
		f.Path = "machine" // where files are chosen
	}
	return f
}

// options are the surroundings of a run of the page.
func (s *Service) options(ctx context.Context, warn func(error)) scenario.Options {
	if warn == nil {
		warn = func(error) {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return scenario.Options{Files: maps.Clone(s.files), Program: s.program, Warn: warn, Cancelled: ctx.Err,
		Workers: 1}
}

// site loads a machine, or returns it where it was loaded before. Calls that ask for one
// while it is loaded wait for it.
func (s *Service) site(ctx context.Context, spec *scenario.Spec) (*loaded, error) {
	key, err := json.Marshal([]any{spec.Machine, spec.NCCL, spec.Network, spec.Seed})
	if err != nil {
		return nil, err
	}
	for {
		x, mine := s.find(ctx, string(key))
		if mine {
			return x, s.load(ctx, x, spec)
		}
		select {
		case <-x.ready:
			if !errors.Is(x.err, context.Canceled) || ctx.Err() != nil {
				return x, x.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// find returns the machine of a key. It is the caller's to load if mine is true.
func (s *Service) find(ctx context.Context, key string) (x *loaded, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sites, func(x *loaded) bool { return x.key == key })
	if mine = i < 0; mine {
		i = min(len(s.sites), keptSites-1)
		s.sites = append(s.sites[:i:i], &loaded{key: key, ready: make(chan struct{}), warnings: []string{}})
	}
	x = s.sites[i]
	copy(s.sites[1:i+1], s.sites[:i])
	s.sites[0] = x
	x.use(ctx)
	return x, mine
}

// load makes a machine. One that failed is not kept.
func (s *Service) load(ctx context.Context, x *loaded, spec *scenario.Spec) error {
	x.err = errLoading // where loading panics
	defer func() {
		close(x.ready)
		if x.err == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sites = slices.DeleteFunc(s.sites, func(o *loaded) bool { return o == x })
	}()
	opt := s.options(ctx, func(err error) { x.warnings = append(x.warnings, err.Error()) })
	opt.Cancelled = x.cancelled
	x.site, x.err = scenario.Load(spec, opt)
	return x.err
}

// running is a Spec ready to be simulated, on a machine that may be kept.
func (s *Service) running(ctx context.Context, spec *scenario.Spec) (*scenario.Running, *loaded, error) {
	if len(spec.Grid) > 0 {
		return nil, nil, scenario.ErrGrid
	}
	if err := spec.Validate(); err != nil {
		return nil, nil, err
	}
	x, err := s.site(ctx, spec)
	if err != nil {
		return nil, nil, err
	}
	if err := x.site.Comm.CheckNets(); err != nil {
		return nil, nil, err
	}
	r, err := scenario.On(x.site, *spec, s.options(ctx, nil))
	return r, x, err
}
