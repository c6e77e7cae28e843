package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// Limits on what is read of an input file, far above what one has.
const (
	maxTopology = topoxml.MaxBytes // the parser's own, as of the next
	maxNetwork  = fabric.MaxBytes
	maxClass    = 1 << 20
)

// File is a file in the making: it appears under its name once Finish is called
// with nil, and never if Finish is called with an error.
type File interface {
	io.Writer
	Finish(err error) error
}

// LimitedFS is an fs.FS that bounds what it reads itself, for one that can give up
// waiting for a pipe.
type LimitedFS interface {
	fs.FS
	// ReadLimited reads a file of at most limit bytes.
	ReadLimited(name string, limit int64) ([]byte, error)
}

// read reads an input file.
func (o *Options) read(name string, limit int64) ([]byte, error) {
	if o.Files == nil {
		return nil, bad(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	}
	if l, ok := o.Files.(LimitedFS); ok {
		data, err := l.ReadLimited(name, limit)
		return data, bad(err)
	}
	data, err := bounded.ReadFS(o.Files, name, limit)
	return data, bad(err)
}

// ReadTopology reads a topology file. A name that is no file may be that of a built-in
// machine, which is returned too.
func (o *Options) ReadTopology(name string) ([]byte, *builtin.Machine, error) {
	data, err := o.read(name, maxTopology)
	if err == nil || !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(name, `/\`) {
		return data, nil, err
	}
	if m := builtin.Lookup(name); m != nil {
		return m.XML(), m, nil
	}
	if near := builtin.Suggest(name); near != "" {
		err = bad(fmt.Errorf("%w, nor a built-in machine; %s is one, and simccl topo list names all", inner(err), near))
	} else if !strings.Contains(name, ".") {
		err = bad(fmt.Errorf("%w, nor a built-in machine; simccl topo list names those", inner(err)))
	}
	return nil, nil, err
}

// inner is the error within an InputError.
func inner(err error) error {
	var in *InputError
	if errors.As(err, &in) {
		return in.Err
	}
	return err
}

// bad makes an error of an input an InputError; being cancelled is none.
func bad(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &InputError{err}
}

// errNowhere: a file is asked of Options that have nowhere to write it.
var errNowhere = errors.New("files cannot be written here")

// create begins an output file.
func (o *Options) create(name string) (File, error) {
	if o.Create == nil {
		return nil, fmt.Errorf("%s: %w", name, errNowhere)
	}
	return o.Create(name)
}

// write writes a whole file.
func (o *Options) write(name string, data []byte) error {
	f, err := o.create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return f.Finish(err)
}

// dump writes the files that NCCL would write at its start, of rank 0: the fused
// topology (NCCL_TOPO_DUMP_FILE) and the graphs (NCCL_GRAPH_DUMP_FILE). Without
// Options.Create there are none.
func (l *loader) dump() error {
	if l.opt.Create == nil {
		return nil
	}
	host := l.site.Cluster.Host(0)
	if v := l.site.Config.Text("NCCL_TOPO_DUMP_FILE"); v.Value != "" && host.Dump != nil {
		if err := l.opt.write(v.Value, topoxml.Write(host.Dump)); err != nil {
			return err
		}
	}
	v := l.site.Config.Text("NCCL_GRAPH_DUMP_FILE")
	if v.Value == "" {
		return nil
	}
	graphs := l.site.Comm.Domains[0].Graphs
	for _, g := range graphs {
		if g != nil && g.NChannels > 0 && (g.TypeIntra == topo.PathC2C || g.TypeInter == topo.PathC2C) {
			l.opt.warn(fmt.Errorf("NCCL_GRAPH_DUMP_FILE=%s: NCCL %s would fail to start, for it has no word for the C2C paths of the %s graph (search.cc:818); they are written as C2C here",
				v.Value, l.site.Config.Rules.Version(), g.Name))
			break
		}
	}
	text, err := graphxml.Write(host.Systems[0], graphs)
	if err != nil {
		return err
	}
	return l.opt.write(v.Value, text)
}
