package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/inputs"
)

// Limits on what is read of an input file, far above what one has.
const (
	maxTopology = topoxml.MaxBytes // the parser's own, as of the next
	maxMachine  = 256 << 20        // of whatever describes one: logs of NCCL are the longest
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

// ReadAs reads an input file of a kind, taken out of what it was compressed or saved in; one
// that is known as another is refused by its name.
func (o *Options) ReadAs(name string, limit int64, kinds ...inputs.Kind) ([]byte, error) {
	data, err := o.read(name, limit)
	if err != nil {
		return nil, err
	}
	data, err = inputs.Take(data, name, limit, kinds...)
	return data, bad(err)
}

// TopologyFile is a topology file that was read.
type TopologyFile struct {
	Data []byte // NCCL's XML
	// Name is what messages about its lines call it: the file, or what was made of it.
	Name    string
	Machine *builtin.Machine // that the name is of; nil for a file
	// Template reports that it names places of GPUs and NICs only.
	Template bool
}

// ReadTopology reads a file that describes a machine in any form that Options.Convert takes,
// and warns of what that assumes. A name that is no file may be that of a built-in machine.
func (o *Options) ReadTopology(name string) (*TopologyFile, error) {
	data, err := o.read(name, maxMachine)
	if err == nil {
		return o.topology(data, name)
	}
	if !errors.Is(err, fs.ErrNotExist) || strings.ContainsAny(name, `/\`) {
		return nil, err
	}
	if m := builtin.Lookup(name); m != nil {
		return &TopologyFile{Data: m.XML(), Name: name, Machine: m}, nil
	}
	near := builtin.Suggest(name)
	if len(near) == 0 { // a word with a wrong letter
		near = builtin.Suggest(config.Nearest(strings.ToLower(name), builtin.Words()))
	}
	if len(near) > 0 {
		err = bad(fmt.Errorf("%w, nor a built-in machine; did you mean %s? simccl topo list names all",
			inner(err), orList(near)))
	} else if !strings.Contains(name, ".") {
		err = bad(fmt.Errorf("%w, nor a built-in machine; simccl topo list names those", inner(err)))
	}
	return nil, err
}

// orList joins names: "a, b or c".
func orList(names []string) string {
	n := len(names) - 1
	if n == 0 {
		return names[0]
	}
	return strings.Join(names[:n], ", ") + " or " + names[n]
}

// topology makes NCCL's XML of a content.
func (o *Options) topology(data []byte, name string) (*TopologyFile, error) {
	v := inputs.Of(data)
	f := &TopologyFile{Data: v.XML(), Name: name, Template: v.Kind() == inputs.Template}
	switch {
	case v.Is(inputs.Topology, inputs.TopologyHosts, inputs.Template, inputs.AMDTopology),
		len(v.Found) == 0 &&
			bytes.HasPrefix(bytes.TrimSpace(f.Data), []byte("<")):
		return f, nil // of XML that is no topology its reader has the place
	case len(v.Found) == 0:
		return nil, bad(&inputs.UnknownError{File: name, Note: v.Note, Wants: "a machine",
			Kinds: inputs.Machines()})
	case !v.Is(inputs.Machines()...):
		return nil, bad(v.Want(name, inputs.Machines()...))
	case o.Convert == nil:
		return nil, bad(fmt.Errorf("%w; simccl topo convert makes a topology file of it",
			v.Want(name, inputs.Topology)))
	}
	made, err := o.Convert(data, name)
	if err != nil {
		return nil, err
	}
	for _, n := range made.Notes {
		o.warn(fmt.Errorf("%s: %s", name, n))
	}
	f.Data, f.Name = made.XML, made.Name
	return f, nil
}

// Converted is NCCL's topology file of a machine that a file describes in another form.
type Converted struct {
	XML   []byte
	Name  string   // what messages about its lines call it
	Notes []string // what was assumed
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
			l.opt.warn(fmt.Errorf("NCCL_GRAPH_DUMP_FILE=%s: NCCL %s would fail to start, for it has no "+
				"word for the C2C paths of the %s graph (search.cc:818); they are written as C2C here",
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
