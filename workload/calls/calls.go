// Package calls reads and writes the record of an intercepted program: its
// communicators, and each rank's calls of NCCL in order with the host's time between
// them, a line of JSON each. Program makes a job of it.
//
// What it must not know: files, machines, how a program is intercepted.
package calls

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Version is the version of the file format.
const Version = 1

// Record is the recorded calls of one intercepted program.
type Record struct {
	Ranks int
	NCCL  string // version of the library that the program saw
	Clock string // word of --time
	Comms []Comm
	// Events lists each rank's events in program order.
	Events [][]Event
}

// Comm is a communicator of the recorded program, identified by its index in Record.Comms.
type Comm struct {
	Ranks  []int32 // of the job, by rank of the communicator
	Parent int     // index + 1 of the one it was split from, 0 for none
	Share  bool    // uses its parent's resources
}

// Kind is the type of an Event.
type Kind uint8

// Kinds of events: a call, a host that waits for streams, CUDA events, kernels.
const (
	Call Kind = iota
	Sync
	Mark
	Wait
	// Work is the time of the program's kernels on a stream after the previous call on it; the host has
	// launched them since its previous event.
	Work
)

// Event is one action of a rank's host thread.
type Event struct {
	Kind   Kind
	Thread int        // of the process
	Host   units.Time // host time since the rank's last event, without waits
	Stream int
	Event  int // of Mark and Wait
	All    bool
	Time   units.Time // of Work
	Timed  bool       // of Mark: the program has asked for the time from it or to it
	// of Mark: how many marks of its rank before it the one is from which the program has asked for the
	// time, 0 for none
	Since int
	// Of Call:
	Group                       int // equal numbers in a row are one group of the rank
	Comm                        int
	Func                        coll.Func
	Type                        coll.DataType
	Op                          coll.RedOp
	Scaled                      bool // a sum of scaled inputs (ncclRedOpCreatePreMulSum)
	Count                       int64
	Root                        int32 // or peer
	InPlace, Registered, Window bool
}

// line is the JSON of a line of any type; the members that are set determine the type.
type line struct {
	Simccl  string  `json:"simccl,omitempty"`
	Version int     `json:"version,omitempty"`
	Ranks   int     `json:"ranks,omitempty"`
	NCCL    string  `json:"nccl,omitempty"`
	Clock   string  `json:"clock,omitempty"`
	Comm    *int    `json:"comm,omitempty"`
	Members []int32 `json:"members,omitempty"`
	Parent  *int    `json:"parent,omitempty"`
	Share   bool    `json:"share,omitempty"`
	Rank    *int    `json:"rank,omitempty"`
	Thread  int     `json:"thread,omitempty"`
	Host    int64   `json:"hostPs,omitempty"`
	Sync    *int    `json:"sync,omitempty"` // stream, -1: all
	Record  *int    `json:"record,omitempty"`
	Wait    *int    `json:"wait,omitempty"`
	Work    int64   `json:"workPs,omitempty"`
	Timed   bool    `json:"timed,omitempty"`
	Since   int     `json:"since,omitempty"`
	Group   int     `json:"group,omitempty"`
	Func    string  `json:"func,omitempty"`
	Type    string  `json:"type,omitempty"`
	Op      string  `json:"op,omitempty"`
	Scaled  bool    `json:"scaled,omitempty"`
	Count   int64   `json:"count,omitempty"`
	Root    int32   `json:"root,omitempty"`
	Peer    *int32  `json:"peer,omitempty"`
	Stream  int     `json:"stream,omitempty"`
	InPlace bool    `json:"inPlace,omitempty"`
	Reg     bool    `json:"registered,omitempty"`
	Window  bool    `json:"window,omitempty"`
}

// Write writes a record: its head, its communicators, then the events rank by rank.
func (r *Record) Write(to io.Writer) error {
	w := bufio.NewWriter(to)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	err := e.Encode(line{Simccl: "calls", Version: Version, Ranks: r.Ranks, NCCL: r.NCCL, Clock: r.Clock})
	for i := range r.Comms {
		c := &r.Comms[i]
		l := line{Comm: &i, Members: c.Ranks, Share: c.Share}
		if c.Parent > 0 {
			parent := c.Parent - 1
			l.Parent = &parent
		}
		err = errors.Join(err, e.Encode(l))
	}
	for rank, list := range r.Events {
		for i := range list {
			err = errors.Join(err, e.Encode(list[i].line(rank)))
		}
	}
	return errors.Join(err, w.Flush())
}

func message(f coll.Func) bool { return f == coll.Send || f == coll.Recv }

func (e *Event) line(rank int) line {
	l := line{Rank: &rank, Thread: e.Thread, Host: int64(e.Host)}
	switch e.Kind {
	case Sync:
		l.Sync = &e.Stream
		if all := -1; e.All {
			l.Sync = &all
		}
		return l
	case Mark:
		l.Record, l.Stream, l.Timed, l.Since = &e.Event, e.Stream, e.Timed, e.Since
		return l
	case Work:
		l.Work, l.Stream = int64(e.Time), e.Stream
		return l
	case Wait:
		l.Wait, l.Stream = &e.Event, e.Stream
		return l
	}
	l.Comm, l.Group, l.Func, l.Type, l.Count, l.Stream = &e.Comm, e.Group, e.Func.TestName(),
		e.Type.TestName(), e.Count, e.Stream
	l.InPlace, l.Reg, l.Window, l.Scaled = e.InPlace, e.Registered, e.Window, e.Scaled
	if e.Func.Reduces() {
		l.Op = e.Op.TestName()
	}
	if message(e.Func) {
		l.Peer = &e.Root
	} else {
		l.Root = e.Root
	}
	return l
}

// Recognise reports whether a text begins with the first line of a record.
func Recognise(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte(`{"simccl":"calls"`))
}

// maxRanks and maxComms bound what a head may ask for.
const (
	maxRanks = 1 << 20
	maxComms = 1 << 22
)

// Read parses a record. It returns a *fail.FileError, or an error of in.
func Read(in io.Reader, file string) (*Record, error) {
	r := &Record{}
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 64<<10), 256<<20)
	n := 0
	for s.Scan() {
		n++
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		var l line
		d := json.NewDecoder(bytes.NewReader(s.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil {
			return nil, fail.At(file, n, 1, err.Error(),
				"a line is one JSON object as simccl intercept --record writes it")
		}
		if problem, hint := r.add(&l, n == 1); problem != "" {
			return nil, fail.At(file, n, 1, problem, hint)
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if r.Events == nil {
		return nil, fail.At(file, 1, 1, "the record is empty",
			`the first line is {"simccl":"calls","version":1,"ranks":N}`)
	}
	return r, nil
}

func (r *Record) add(l *line, head bool) (problem, hint string) {
	switch {
	case head:
		if l.Simccl != "calls" || l.Version != Version || l.Ranks < 1 || l.Ranks > maxRanks {
			return fmt.Sprintf("no head of version %d", Version),
				`write {"simccl":"calls","version":1,"ranks":N}`
		}
		r.Ranks, r.NCCL, r.Clock, r.Events = l.Ranks, l.NCCL, l.Clock, make([][]Event, l.Ranks)
		return "", ""
	case l.Rank == nil && l.Comm != nil:
		return r.addComm(l)
	case l.Rank == nil:
		return "neither a communicator nor an event", "write comm and members, or rank"
	case *l.Rank < 0 || *l.Rank >= r.Ranks:
		return fmt.Sprintf("rank %d of %d", *l.Rank, r.Ranks), ""
	case l.Host < 0 || units.Time(l.Host) > workload.MaxTime:
		return fmt.Sprintf("a time of %d ps", l.Host), fmt.Sprintf("write one from 0 to %d", workload.MaxTime)
	case l.Work < 0 || units.Time(l.Work) > workload.MaxTime:
		return fmt.Sprintf("work of %d ps", l.Work), fmt.Sprintf("write a time from 0 to %d",
			workload.MaxTime)
	case l.Since < 0:
		return fmt.Sprintf("since %d", l.Since), "write how many marks of the rank before it the other one is"
	case l.Stream < 0 || l.Stream >= int(workload.HostStream) || l.Thread < 0 || l.Thread >= 1<<15:
		return fmt.Sprintf("stream %d of thread %d", l.Stream, l.Thread),
			"number both from 0, streams below 65536 and threads below 32768"
	}
	e := Event{Thread: l.Thread, Host: units.Time(l.Host), Stream: l.Stream}
	switch {
	case l.Sync != nil:
		e.Kind, e.Stream, e.All = Sync, max(*l.Sync, 0), *l.Sync < 0
	case l.Record != nil:
		e.Kind, e.Event, e.Timed, e.Since = Mark, *l.Record, l.Timed, l.Since
	case l.Wait != nil:
		e.Kind, e.Event = Wait, *l.Wait
	case l.Work > 0:
		e.Kind, e.Time = Work, units.Time(l.Work)
	default:
		if problem, hint = r.addCall(&e, l); problem != "" {
			return problem, hint
		}
	}
	r.Events[*l.Rank] = append(r.Events[*l.Rank], e)
	return "", ""
}

func (r *Record) addComm(l *line) (problem, hint string) {
	if *l.Comm != len(r.Comms) || len(r.Comms) >= maxComms {
		return fmt.Sprintf("communicator %d after %d", *l.Comm, len(r.Comms)-1),
			"number them from 0, in order"
	}
	c := Comm{Ranks: l.Members, Share: l.Share}
	seen := map[int32]bool{}
	for _, m := range l.Members {
		if m < 0 || int(m) >= r.Ranks || seen[m] {
			return fmt.Sprintf("member %d of communicator %d", m, *l.Comm),
				fmt.Sprintf("members are different ranks from 0 to %d", r.Ranks-1)
		}
		seen[m] = true
	}
	if len(l.Members) == 0 {
		return fmt.Sprintf("communicator %d has no members", *l.Comm), "list their ranks"
	}
	if l.Parent != nil {
		if *l.Parent < 0 || *l.Parent >= *l.Comm {
			return fmt.Sprintf("parent %d of communicator %d", *l.Parent, *l.Comm),
				"a parent is an earlier communicator"
		}
		c.Parent = *l.Parent + 1
	}
	r.Comms = append(r.Comms, c)
	return "", ""
}

func (r *Record) addCall(e *Event, l *line) (problem, hint string) {
	var err error
	if l.Comm == nil || *l.Comm < 0 || *l.Comm >= len(r.Comms) {
		return "a call on no communicator of this record", "write comm, and its line before"
	}
	e.Comm, e.Group, e.Count, e.InPlace, e.Registered, e.Window, e.Scaled = *l.Comm, l.Group, l.Count,
		l.InPlace, l.Reg, l.Window, l.Scaled
	switch l.Func {
	case "send":
		e.Func = coll.Send
	case "recv":
		e.Func = coll.Recv
	default:
		if e.Func, err = coll.ParseFunc(l.Func); err != nil {
			return err.Error(), ""
		}
	}
	if e.Type, err = coll.ParseDataType(l.Type); err != nil {
		return err.Error(), ""
	}
	if l.Op != "" {
		if e.Op, err = coll.ParseRedOp(l.Op); err != nil {
			return err.Error(), ""
		}
	}
	if e.Root = l.Root; l.Peer != nil {
		e.Root = *l.Peer
	}
	if n := len(r.Comms[e.Comm].Ranks); e.Root < 0 || int(e.Root) >= n || e.Count < 0 ||
		(l.Peer != nil) != message(e.Func) {
		return fmt.Sprintf("%s of %d elements with rank %d of %d", l.Func, e.Count, e.Root, n),
			"root and peer are ranks of the communicator; send and recv have a peer"
	}
	return "", ""
}
