package grouplog

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
)

// Group is the recorded calls between ncclGroupStart and ncclGroupEnd.
type Group struct {
	Number int
	Mode   string // plain, reg, win, split0, split1 (the file's word)
	Tasks  []Task
	// Lines is NCCL's log lines about the group, TimeUs the shortest measured time; empty and 0 if the file
	// has none.
	Lines  []Printed
	TimeUs float64
}

// Task is one call of a group, as every rank of its communicator issues it.
type Task struct {
	Func  coll.Func
	Count int64
	Type  coll.DataType
	Op    coll.RedOp
	Root  int // modulo the communicator's size
	Shift int // of SendRecv: to rank + shift, from rank - shift
	Comm  string
}

// Printed is a line of NCCL, and the device of the rank that printed it.
type Printed struct {
	Device int
	Line
}

// Line is NCCL's log line for a launched collective.
type Line struct {
	Func  string `json:"func"`
	Bytes int64  `json:"bytes"`
	Algo  string `json:"algo"`
	Proto string `json:"proto"`
	Lo    int    `json:"lo"`
	Hi    int    `json:"hi"`
}

const maxLine = 1 << 16

// Read reads a file of groups. Lines that do not begin with GROUP, TASK, TIME or a
// rank's prefix are passed over. Errors are *fail.FileError.
func Read(r io.Reader, name string) ([]Group, error) {
	rd := reader{file: name}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		rd.line++
		if err := rd.take(sc.Text()); err != nil {
			return nil, err
		}
	}
	if err := sc.Err(); err != nil {
		return nil, rd.bad(1, "%v; a line has at most %d bytes", err, maxLine)
	}
	if len(rd.groups) == 0 {
		return nil,
			rd.bad(1,
				"no line begins with GROUP; give a file as groups.cu prints it: GROUP 0 mode plain tasks 1")
	}
	return rd.groups, nil
}

type reader struct {
	file   string
	line   int
	groups []Group
}

func (r *reader) bad(column int, format string, args ...any) error {
	return fail.At(r.file, max(r.line, 1), column, fmt.Sprintf(format, args...), "")
}

func (r *reader) take(text string) error {
	f := strings.Fields(text)
	if len(f) == 0 {
		return nil
	}
	if f[0] == "GROUP" {
		return r.group(text, f)
	}
	if len(r.groups) == 0 {
		return nil
	}
	g := &r.groups[len(r.groups)-1]
	switch {
	case f[0] == "TASK":
		return r.task(g, text, f)
	case f[0] == "TIME" && len(f) >= 6 && f[4] == "best_us":
		us, err := strconv.ParseFloat(f[5], 64)
		if err != nil || us < 0 {
			return r.bad(column(text, f, 5), "%q is no time in us", f[5])
		}
		g.TimeUs = us
	case strings.HasPrefix(f[0], "["):
		if p, ok := printed(text); ok {
			g.Lines = append(g.Lines, p)
		}
	}
	return nil
}

// column returns the column of the i-th field of a line, counted from 1.
func column(text string, f []string, i int) int {
	at := 0
	for k := 0; k <= i && k < len(f); k++ {
		at += strings.Index(text[at:], f[k])
		if k < i {
			at += len(f[k])
		}
	}
	return at + 1
}

// group parses "GROUP 3 mode plain tasks 8".
func (r *reader) group(text string, f []string) error {
	if len(f) < 4 || f[2] != "mode" {
		return r.bad(1, "a group is written GROUP 0 mode plain tasks 1")
	}
	n, err := strconv.Atoi(f[1])
	if err != nil || n < 0 {
		return r.bad(column(text, f, 1), "%q is no number of a group", f[1])
	}
	switch f[3] {
	case "plain", "reg", "win", "split0", "split1":
	default:
		return r.bad(column(text, f, 3), "%q is no mode; plain, reg, win, split0 and split1 are", f[3])
	}
	r.groups = append(r.groups, Group{Number: n, Mode: f[3]})
	return nil
}

// task reads "TASK 0 AllReduce count 4 type 7 op 0 root 1 shift 2 comm world".
func (r *reader) task(g *Group, text string, f []string) error {
	words := [...]string{3: "count", 5: "type", 7: "op", 9: "root", 11: "shift", 13: "comm"}
	if len(f) != 15 {
		return r.bad(1, "a task has 15 words: TASK 0 AllReduce count 4 type 7 op 0 root 0 shift 1 comm world")
	}
	for i, w := range words {
		if w != "" && f[i] != w {
			return r.bad(column(text, f, i), "%q; here %s is written", f[i], w)
		}
	}
	var t Task
	var err error
	if t.Func, err = coll.ParseFunc(f[2]); err != nil {
		return r.bad(column(text, f, 2), "%v", err)
	}
	number := func(i int, most int64) int64 {
		n, e := strconv.ParseInt(f[i], 10, 64)
		if (e != nil || n < 0 || n > most) && err == nil {
			err = r.bad(column(text, f, i), "%q is no %s; give 0 to %d", f[i], f[i-1], most)
		}
		return n
	}
	t.Count = number(4, 1<<40)
	t.Type = coll.DataType(number(6, int64(coll.NumDataTypes)-1))
	t.Op = coll.RedOp(number(8, int64(coll.NumRedOps)-1))
	t.Root, t.Shift = int(number(10, 1<<20)), int(number(12, 1<<20))
	if t.Comm = f[14]; t.Comm != "world" && t.Comm != "halves" && t.Comm != "strides" && err == nil {
		err = r.bad(column(text, f, 14), "%q is no communicator; world, halves and strides are", t.Comm)
	}
	g.Tasks = append(g.Tasks, t)
	return err
}

// printed reads "[0] NCCL INFO AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}".
func printed(text string) (Printed, bool) {
	var p Printed
	var fn string
	n, err := fmt.Sscanf(text, "[%d] NCCL INFO %s %d Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}",
		&p.Device, &fn, &p.Bytes, &p.Algo, &p.Proto, &p.Lo, &p.Hi)
	p.Func = strings.TrimSuffix(fn, ":")
	return p, n == 7 && err == nil
}
