package simai

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
)

// File is a parsed SimAI workload.
type File struct {
	// Policy is the first word of the file: HYBRID_TRANSFORMER_FWD_IN_BCKWD, MICRO, ….
	Policy string
	// Tensor, Expert and Pipeline are sizes of groups, Virtual the number of stages of a rank, Micro the
	// number of microbatches (ga), GPUs the number of ranks; 0 if the file does not state it.
	Tensor, Expert, Pipeline, Virtual, Micro, GPUs int
	// PipelineBytes is the size of a message from a stage to the next (pp_comm).
	PipelineBytes int64
	Rows          []Row
	// Notes lists remarks for users.
	Notes []string
}

// Row is a layer: its three passes and its update.
type Row struct {
	Name string
	// Forward, Input and Weight are the passes.
	Forward, Input, Weight Pass
	Update                 int64 // ns
}

// Pass is a computation and the collective after it.
type Pass struct {
	Compute int64  // ns
	Coll    string // NONE, ALLREDUCE, ALLTOALL_EP …
	Bytes   int64
}

// maxRows is the largest accepted number of rows.
const maxRows = 1 << 22

// Recognise reports whether a text begins like such a file: a policy and, on the
// second line, a number alone.
func Recognise(head []byte) bool {
	first, rest, ok := strings.Cut(string(head), "\n")
	if !ok {
		return false
	}
	second, _, _ := strings.Cut(rest, "\n")
	_, err := strconv.Atoi(strings.TrimSpace(second))
	w := strings.Fields(first)
	return err == nil && len(w) > 0 && policy(w[0])
}

// policy reports whether a word is one of SimAI's and ASTRA-sim's policies.
func policy(w string) bool {
	switch w {
	case "DATA", "MODEL", "TRANSFORMER", "TRANSFORMER_FWD_IN_BCKWD", "DLRM", "DLRM_ENHANCED", "MICRO",
		"HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA",
		"HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED",
		"HYBRID_CUSTOMIZED", "DISTRIBUTED_INFERENCE":
		return true
	}
	return false
}

// Read parses a workload. It returns a *fail.FileError, or an error of in.
func Read(in io.Reader, file string) (*File, error) {
	r := reader{file: file, s: bufio.NewScanner(in), f: &File{}}
	r.s.Buffer(make([]byte, 64<<10), 1<<20)
	if !r.next() {
		return nil, r.fail(1, "the first line has the policy and the parallelism", "no workload")
	}
	if err := r.header(); err != nil {
		return nil, err
	}
	if !r.next() {
		return nil, r.fail(1, "the second line has the number of rows", "there are no rows")
	}
	n, err := strconv.Atoi(strings.TrimSpace(r.text))
	if err != nil || n < 0 || n > maxRows {
		return nil, r.fail(1, "write the number of rows", "%q is no number of rows", r.text)
	}
	extra := 0
	for r.next() {
		if strings.TrimSpace(r.text) == "" {
			continue
		}
		if len(r.f.Rows) == n {
			extra++
			continue
		}
		if err := r.row(); err != nil {
			return nil, err
		}
	}
	if err := r.s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(r.f.Rows) < n {
		r.f.Notes = append(r.f.Notes, fmt.Sprintf("%s:2:1: the second line says %d rows, but there are %d",
			file, n, len(r.f.Rows)))
	}
	if extra > 0 {
		r.f.Notes = append(r.f.Notes,
			fmt.Sprintf("%s: %d rows after the %d that the second line says were passed over, as SimAI does",
				file, extra, n))
	}
	return r.f, nil
}

type reader struct {
	file string
	s    *bufio.Scanner
	line int
	text string
	f    *File
}

func (r *reader) next() bool {
	if !r.s.Scan() {
		return false
	}
	r.line++
	r.text = r.s.Text()
	return true
}

func (r *reader) fail(col int, hint, format string, args ...any) error {
	return fail.At(r.file, max(r.line, 1), col, fmt.Sprintf(format, args...), hint)
}

// word is a field with its column.
type word struct {
	text string
	col  int
}

func words(line string) []word {
	var out []word
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' || line[i] == '\r' {
			i++
			continue
		}
		j := i
		for j < len(line) && line[j] != ' ' && line[j] != '\t' && line[j] != '\r' {
			j++
		}
		out = append(out, word{line[i:j], i + 1})
		i = j
	}
	return out
}

// header parses the policy and name-value pairs of the first line.
func (r *reader) header() error {
	w := words(r.text)
	if len(w) == 0 || !policy(w[0].text) {
		return r.fail(1, "the first word is a policy, as HYBRID_TRANSFORMER_FWD_IN_BCKWD",
			"this is no SimAI workload")
	}
	r.f.Policy = w[0].text
	for i := 1; i+1 < len(w); i += 2 {
		n, err := strconv.ParseInt(w[i+1].text, 10, 64)
		if err != nil || n < 0 {
			return r.fail(w[i+1].col, "", "%s of %q is no number", strings.TrimSuffix(w[i].text, ":"),
				w[i+1].text)
		}
		name := strings.TrimSuffix(w[i].text, ":")
		if name == "pp_comm" {
			r.f.PipelineBytes = n
			continue
		}
		if n > 1<<24 {
			return r.fail(w[i+1].col, "", "%s of %d is too large", name, n)
		}
		switch name {
		case "model_parallel_NPU_group":
			r.f.Tensor = int(n)
		case "ep":
			r.f.Expert = int(n)
		case "pp":
			r.f.Pipeline = int(n)
		case "vpp":
			r.f.Virtual = int(n)
		case "ga":
			r.f.Micro = int(n)
		case "all_gpus":
			r.f.GPUs = int(n)
		case "checkpoints", "checkpoint_initiates":
			if n != 0 {
				r.f.Notes = append(r.f.Notes,
					fmt.Sprintf("%s:%d:%d: %s are not modelled: activations are not computed again", r.file,
						r.line, w[i].col, name))
			}
		default:
			return r.fail(w[i].col, "known are model_parallel_NPU_group, ep, pp, vpp, ga, all_gpus, "+
				"pp_comm, checkpoints and checkpoint_initiates", "%s is not known", name)
		}
	}
	return nil
}

// row parses a layer of twelve fields.
func (r *reader) row() error {
	w := words(r.text)
	if len(w) < 12 {
		return r.fail(1, "a row has name, dependency, three times compute, collective and bytes, and update",
			"%d fields, 12 are expected", len(w))
	}
	var row Row
	row.Name = w[0].text
	for k, p := range []*Pass{&row.Forward, &row.Input, &row.Weight} {
		at := 2 + 3*k
		var err error
		if p.Compute, err = strconv.ParseInt(w[at].text, 10, 64); err != nil || p.Compute < 0 ||
			p.Compute > 1e15 {
			return r.fail(w[at].col, "write nanoseconds", "%q is no time", w[at].text)
		}
		p.Coll = w[at+1].text
		if _, _, err := operation(p.Coll, k == 2); err != nil {
			return r.fail(w[at+1].col, err.Error(), "%q is no collective", p.Coll)
		}
		if p.Bytes, err = strconv.ParseInt(w[at+2].text, 10, 64); err != nil || p.Bytes < 0 ||
			p.Bytes > 1<<50 {
			return r.fail(w[at+2].col, "write bytes", "%q is no size", w[at+2].text)
		}
	}
	var err error
	if row.Update, err = strconv.ParseInt(w[11].text, 10, 64); err != nil || row.Update < 0 ||
		row.Update > 1e15 {
		return r.fail(w[11].col, "write nanoseconds", "%q is no time", w[11].text)
	}
	r.f.Rows = append(r.f.Rows, row)
	return nil
}

// Write writes the file in SimAI's format.
func (f *File) Write(to io.Writer) error {
	b := bufio.NewWriter(to)
	b.WriteString(f.Policy)
	for _, x := range []struct {
		name string
		n    int
	}{{"model_parallel_NPU_group", f.Tensor}, {"ep", f.Expert}, {"pp", f.Pipeline}, {"vpp", f.Virtual},
		{"ga", f.Micro}, {"all_gpus", f.GPUs}} {
		if x.n > 0 {
			fmt.Fprintf(b, " %s: %d", x.name, x.n)
		}
	}
	if f.Tensor > 0 {
		b.WriteString(" checkpoints: 0 checkpoint_initiates: 0")
	}
	if f.PipelineBytes > 0 {
		fmt.Fprintf(b, " pp_comm: %d", f.PipelineBytes)
	}
	fmt.Fprintf(b, "\n%d\n", len(f.Rows))
	for _, r := range f.Rows {
		fmt.Fprintf(b, "%s\t-1", r.Name)
		for _, p := range []Pass{r.Forward, r.Input, r.Weight} {
			fmt.Fprintf(b, "\t%d\t%s\t%d", p.Compute, p.Coll, p.Bytes)
		}
		fmt.Fprintf(b, "\t%d\n", r.Update)
	}
	return b.Flush()
}
