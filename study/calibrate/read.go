package calibrate

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/bounded"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// FileError is a measured file that cannot be used as it is.
type FileError struct {
	File    string // empty: the whole directory
	Line    int    // 0: the whole file
	Problem string
}

// Error formats file, line and problem.
func (e *FileError) Error() string {
	if e.File == "" {
		return e.Problem
	}
	if e.Line == 0 {
		return e.File + ": " + termtext.Short(e.Problem, 400)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, termtext.Short(e.Problem, 400))
}

// Read loads the measured files of a directory and those below it: tables of
// nccl-tests (.txt, .log, .out), its JSON, our own bench's of both kinds, published
// tables as JSON (docs/results/HARDWARE.md), and lists of "PB ranks operation bytes
// eager_us graph_us". Files of other kinds,
// and runs of other backends than NCCL, are named in left.
func Read(dir fs.FS) (runs []*Run, left []string, err error) {
	err = fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == SettingsFile {
			return err
		}
		of, lines, err := readFile(dir, name)
		if err != nil {
			return err
		}
		left = append(left, lines...)
		for _, run := range of {
			run.place()
			runs = append(runs, run)
		}
		return nil
	})
	if err == nil && len(runs) == 0 {
		err = &FileError{
			Problem: "no measured times found: give nccl-tests tables (.txt), its JSON (-J), or ours"}
	}
	return runs, left, err
}

// ReadAll is Read with settings, NCCL_NAME=VALUE, for runs that do not state any. It calls left for each
// omitted table or file, except for files in ignored.
func ReadAll(dir fs.FS, env []string, left func(line string), ignored ...string) ([]*Run, error) {
	runs, lines, err := Read(dir)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		if !slices.ContainsFunc(ignored, func(name string) bool { return strings.HasPrefix(l, name+": ") }) {
			left(l)
		}
	}
	for _, r := range runs {
		r.assume(env)
	}
	return runs, nil
}

// ReadFile is Read for one file.
func ReadFile(dir fs.FS, name string) (runs []*Run, left []string, err error) {
	runs, left, err = readFile(dir, name)
	for _, r := range runs {
		r.place()
	}
	return runs, left, err
}

// readFile reads one file; left are lines on what of it is left out.
func readFile(dir fs.FS, name string) (runs []*Run, left []string, err error) {
	out := func(why string) ([]*Run, []string, error) { return nil, []string{name + ": " + why}, nil }
	ext := path.Ext(name)
	if !slices.Contains([]string{".txt", ".log", ".out", ".json"}, ext) {
		return out("not a table by its ending")
	}
	if info, err := fs.Stat(dir, name); err == nil && !info.Mode().IsRegular() {
		return out("not a file but a " + kindOf(info.Mode()))
	}
	text, err := bounded.ReadFS(dir, name, maxFile)
	if err != nil {
		return nil, nil, asFileError(name, err)
	}
	lines, err := settingsBeside(dir, name)
	if err != nil {
		return nil, nil, err
	}
	runs, left, err = parse(name, text, lines, ext == ".json", false)
	for _, r := range runs {
		if r.Ranks == 0 {
			return nil, nil, &FileError{File: r.File,
				Problem: "the table does not list its GPUs (\"#  Rank 0 Group …\"): how many ranks were " +
					"there?"}
		}
	}
	return runs, left, err
}

// Parse reads the tables of a content, whatever the name of its file, simulated ones too. A table
// that does not list its GPUs makes a Run of 0 ranks.
func Parse(name string, text []byte) (runs []*Run, left []string, err error) {
	begin := bytes.TrimLeft(text, " \t\r\n\ufeff")
	rest, list := bytes.CutPrefix(begin, []byte("[")) // not the prefix of a line: [1,0]<stdout>:
	rest = bytes.TrimLeft(rest, " \t\r\n")
	isJSON := bytes.HasPrefix(rest, []byte("{")) || list && bytes.HasPrefix(rest, []byte("]"))
	runs, left, err = parse(name, text, nil, isJSON, true)
	for _, r := range runs {
		r.place()
	}
	return runs, left, err
}

// parse parses a content with the settings of its folder. simulated also accepts tables of simulated times.
func parse(name string, text []byte, lines settings, isJSON, simulated bool) (runs []*Run, left []string,
	err error) {
	out := func(why string) ([]*Run, []string, error) { return nil, []string{name + ": " + why}, nil }
	var run *Run
	var why string
	switch {
	case isJSON:
		if runs, left, ok, err := readPublished(name, text, lines); ok || err != nil {
			return runs, left, err
		}
		run, why, err = readJSON(name, text, lines, simulated)
	case bytes.HasPrefix(text, []byte("PB ")) || bytes.Contains(text, []byte("\nPB ")):
		run, err = readList(name, text, lines)
	case bytes.Contains(text, []byte("Collective test starting")) || nccltests.HeaderAt(text) >= 0:
		return readTables(name, text, lines, simulated)
	default:
		return out("no table in it")
	}
	switch {
	case err != nil:
		return nil, nil, err
	case why == "" && len(run.Samples) == 0:
		why = "no times in it"
	}
	if why != "" {
		return out(why)
	}
	return []*Run{run}, nil, nil
}

// settingsBeside reads the SettingsFile of the folder that contains a file.
func settingsBeside(dir fs.FS, name string) (settings, error) {
	beside := path.Join(path.Dir(name), SettingsFile)
	info, err := fs.Stat(dir, beside)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	s, err := bounded.ReadFS(dir, beside, maxFile)
	if err != nil {
		return nil, asFileError(beside, err)
	}
	return parseSettings(s)
}

// maxFile is the largest accepted size of a measured file, in bytes; a sweep has kilobytes.
const maxFile = 16 << 20

// asFileError is a file that is too large as a FileError; other errors are the
// system's.
func asFileError(name string, err error) error {
	var large *bounded.TooLargeError
	if errors.As(err, &large) {
		return &FileError{File: name,
			Problem: fmt.Sprintf("more than the %d bytes that are read of a measured file", large.Limit)}
	}
	return err
}

// scanned converts the error of a line scanner: a line that is too long becomes a FileError.
func scanned(name string, err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return &FileError{File: name, Problem: fmt.Sprintf("a line of more than %d bytes",
			bufio.MaxScanTokenSize)}
	}
	return err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "folder"
}

// place numbers the sizes of each series, in ascending order.
func (r *Run) place() {
	for i := range r.Samples {
		r.Samples[i].Run = r
	}
	slices.SortStableFunc(r.Samples, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.series(), b.series()), cmp.Compare(a.Bytes, b.Bytes))
	})
	for i := 1; i < len(r.Samples); i++ {
		a, b := &r.Samples[i-1], &r.Samples[i]
		switch {
		case a.series() != b.series():
		case a.Bytes == b.Bytes: // -N, run cycles
			b.Place = a.Place
		default:
			b.Place = a.Place + 1
		}
	}
}

// listed are the operations of "PB" lines. What their bytes count is in
// testdata/measured/README.md.
var listed = map[string]coll.Func{"ar": coll.AllReduce, "ag": coll.AllGather, "rs": coll.ReduceScatter,
	"bc": coll.Broadcast, "rd": coll.Reduce, "a2a": coll.AllToAll, "sr": coll.SendRecv}

const listLine = "a PB line is PB RANKS OPERATION BYTES EAGER_US GRAPH_US"

func readList(name string, text []byte, s settings) (*Run, error) {
	r := &Run{File: name, Nodes: 1, Launch: sim.Graph, PerThread: 1}
	var comments []string
	scan := bufio.NewScanner(bytes.NewReader(text))
	var at []int
	var rows [][]string
	for line := 1; scan.Scan(); line++ {
		f := strings.Fields(scan.Text())
		switch {
		case len(f) == 0:
		case f[0] == "PB" && len(f) != 6:
			return nil, &FileError{name, line, listLine}
		case f[0] == "PB":
			rows, at = append(rows, f), append(at, line)
		case f[0] == "#":
			comments = append(comments, scan.Text())
		}
	}
	t, err := provenanceOf(name, settingsInText(comments), s)
	if err != nil {
		return nil, &FileError{File: name, Problem: err.Error()}
	}
	r.Env, r.From = t.env, t.from
	for i, f := range rows {
		ranks, err1 := strconv.Atoi(f[1])
		bytes, err2 := strconv.ParseInt(f[3], 10, 64)
		us, err3 := strconv.ParseFloat(f[5], 64)
		fn, known := listed[f[2]]
		switch {
		case errors.Join(err1, err2, err3) != nil:
			return nil, &FileError{name, at[i], listLine}
		case !known:
			return nil,
				&FileError{name, at[i], fmt.Sprintf("no operation %q; write ar, ag, rs, bc, rd, a2a or sr",
					f[2])}
		case r.Ranks != 0 && ranks != r.Ranks:
			return nil, &FileError{name, at[i], fmt.Sprintf("%d ranks after %d: one file is one communicator",
				ranks, r.Ranks)}
		}
		r.Ranks = ranks
		count := coll.ExactSizes(fn, units.Bytes(bytes), t.typ, ranks).Count
		if us > 0 && count > 0 {
			r.Samples = append(r.Samples, Sample{Op: comm.Op{Func: fn, Count: count, Type: t.typ},
				Bytes: bytes, Us: us})
		}
	}
	return r, scanned(name, scan.Err())
}
