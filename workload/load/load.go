package load

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/internal/envelope"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/calls"
	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/flight"
	"github.com/simccl/simccl/workload/goal"
	"github.com/simccl/simccl/workload/internal/torch"
	"github.com/simccl/simccl/workload/kineto"
	"github.com/simccl/simccl/workload/nccllog"
	"github.com/simccl/simccl/workload/rebuild"
	"github.com/simccl/simccl/workload/simai"
)

// File is an input file: its name and how to open it.
type File struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// Options supplies what the files do not state.
type Options struct {
	Ranks     int  // number of ranks, 0 for what the files say
	Symmetric bool // ranks without a recording do what the first one does
	// Faulty also accepts an invalid program in simccl's text form; the caller finds its problems with
	// workload.Program.Lint.
	Faulty bool
	// Budget limits the memory of what the files are converted to; nil: no limit.
	Budget *bounded.Budget
	// Partial accepts a job of which some ranks have no recording, for inspection.
	Partial bool
}

// Job is a job assembled from all files of one run.
type Job struct {
	Program *workload.Program
	Format  Format // of the files that the program is made from
	Files   []Input
	Meta    MetaInfo
	// Rebuilt describes how the program was reconstructed from recordings; nil for other formats.
	Rebuilt *rebuild.Result
	// Traces lists the recordings from which the job was made.
	Traces []*kineto.Trace
	Notes  []string
}

// Input is an input file with its format, and whether it was used.
type Input struct {
	Name   string
	Format Format
	Used   bool
}

// parts collects the contents of the files by format.
type parts struct {
	o       Options
	files   []Input
	native  []*workload.Program
	calls   []*calls.Record
	kineto  []*kineto.Trace
	et      []ranked[*torch.Trace]
	chakra  []ranked[*chakra.Trace]
	groups  map[string][]int32
	flight  []ranked[*flight.Dump]
	log     nccllog.Log
	logs    int
	simai   []*simai.File
	aicb    []*simai.AICBFile
	goal    []*goal.File
	records []nccllog.InspectorRecord
	meta    MetaInfo
	notes   []string
}

// ranked is a part with the rank that its file name has; -1 none.
type ranked[T any] struct {
	rank int
	name string
	part T
}

// Load reads files and makes a job of them. Errors have the file and place.
func Load(files []File, o Options) (*Job, error) {
	p := &parts{o: o, groups: map[string][]int32{}}
	sorted := slices.Clone(files)
	slices.SortStableFunc(sorted, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	for _, f := range sorted {
		if err := p.file(f); err != nil {
			return nil, err
		}
	}
	return p.job()
}

func (p *parts) file(f File) (err error) {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return p.read(r, f.Name, 0)
}

// maxNesting is the maximum nesting of archives and compression.
const maxNesting = 3

// read reads one file, or the members of an archive.
func (p *parts) read(in io.Reader, name string, depth int) error {
	b := bufio.NewReaderSize(in, HeadSize)
	head, err := b.Peek(HeadSize)
	if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
		return fmt.Errorf("%s: %w", name, err)
	}
	if depth > maxNesting {
		return fmt.Errorf("%s: archives are nested more than %d deep", name, maxNesting)
	}
	packed := envelope.Packed(head)
	suffix := map[string]string{"gzip": ".gz", "zstd": ".zst"}[packed]
	switch {
	case len(head) == 0:
		p.notes = append(p.notes, name+" is empty")
		return nil
	case suffix != "":
		z, err := envelope.Unpacker(packed, b)
		if err != nil {
			return fmt.Errorf("%s: %w", name, errors.Unwrap(err))
		}
		defer z.Close()
		return p.read(z, strings.TrimSuffix(name, suffix), depth+1)
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return p.archive(b, name, depth)
	}
	format, err := detect(head, name)
	if err != nil {
		return err
	}
	if format == Unknown {
		return &UnknownError{name}
	}
	p.files = append(p.files, Input{Name: name, Format: format})
	metered := p.o.Budget.Reader(b, name)
	return metered.Why(p.part(metered, name, format))
}

// UnknownError is a file of no format that is read.
type UnknownError struct{ File string }

// Error names the file and lists the formats that are read.
func (e *UnknownError) Error() string {
	return e.File + ": the format is not known; Kineto, PyTorch and Chakra execution traces, Flight " +
		"Recorder dumps, NCCL logs with COLL lines, SimAI, AICB, GOAL, the Inspector's records and " +
		"simccl's own text are read"
}

// archive reads the members of a tar archive that are files of known formats.
func (p *parts) archive(in io.Reader, name string, depth int) error {
	a := tar.NewReader(in)
	read := 0
	for {
		h, err := a.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		base := path.Base(h.Name)
		if h.Typeflag != tar.TypeReg || strings.HasPrefix(base, "._") {
			continue
		}
		err = p.read(a, name+"/"+h.Name, depth+1)
		var unknown *UnknownError
		switch {
		case errors.As(err, &unknown):
			p.notes = append(p.notes, unknown.File+" is of no known format and was passed over")
		case err != nil:
			return err
		default:
			read++
		}
	}
	if read == 0 {
		return fmt.Errorf("%s: no member of the archive is of a known format", name)
	}
	return nil
}

// maxText is the largest number of bytes of a file that are held in memory at once; a compressed file may
// expand to any length.
const maxText = 2 << 30

// part reads a file in its format and adds it to the parts of the job.
func (p *parts) part(in io.Reader, name string, format Format) error {
	switch format {
	case Native:
		w, err := workload.Read(io.LimitReader(in, maxText), name)
		var problem *workload.Problem
		if p.o.Faulty && w != nil && errors.As(err, &problem) {
			err = nil
		}
		p.native = append(p.native, w)
		return err
	case Kineto:
		t, err := kineto.Read(in, name)
		p.kineto = append(p.kineto, t)
		return err
	case TorchET:
		t, err := torch.Read(in, name)
		p.et = append(p.et, ranked[*torch.Trace]{rankOf(name), name, t})
		return err
	case Chakra, ChakraJSON:
		read := chakra.Read
		if format == ChakraJSON {
			read = chakra.ReadJSON
		}
		t, err := read(in, name)
		p.chakra = append(p.chakra, ranked[*chakra.Trace]{rankOf(name), name, t})
		return err
	case ChakraGroups:
		text, err := io.ReadAll(io.LimitReader(in, 64<<20))
		if err == nil {
			chakra.ParseGroups(text, p.groups)
		}
		return err
	case FlightJSON, FlightPickle:
		read := flight.ReadJSON
		if format == FlightPickle {
			read = flight.ReadPickle
		}
		d, err := read(in, name)
		p.flight = append(p.flight, ranked[*flight.Dump]{rankOf(name), name, d})
		return err
	case Log:
		p.logs++
		return p.log.Read(in, name)
	}
	return p.otherPart(in, name, format)
}

func (p *parts) otherPart(in io.Reader, name string, format Format) error {
	switch format {
	case Calls:
		r, err := calls.Read(in, name)
		if err != nil {
			return err
		}
		p.calls = append(p.calls, r)
	case SimAI:
		f, err := simai.Read(in, name)
		p.simai = append(p.simai, f)
		return err
	case AICB:
		f, err := simai.ReadAICB(in, name)
		p.aicb = append(p.aicb, f)
		return err
	case GOAL, GOALBinary:
		read := goal.ReadText
		if format == GOALBinary {
			read = goal.ReadBinary
		}
		f, err := read(in, name)
		p.goal = append(p.goal, f)
		return err
	case Inspector:
		list, truncated, err := nccllog.ReadInspector(in, name)
		if truncated {
			p.notes = append(p.notes, name+" ends within a record; it was read to the last whole one")
		}
		p.records = append(p.records, list...)
		return err
	case Meta:
		return p.meta.read(in, name)
	}
	return nil // times are compared with by others
}
