package perfetto

import (
	"fmt"

	"github.com/simccl/simccl/internal/protowire"
	"github.com/simccl/simccl/trace"
)

// descriptor stores a track, and passes its names in the form of a Chrome trace.
func (r *reader) descriptor(b []byte) error {
	var uuid uint64
	l := &lane{unit: "value"}
	var rank int64
	var process, thread []byte
	err := r.fields(b, func(f protowire.Field) (err error) {
		switch f.Number {
		case trackUUID:
			uuid = f.Value
		case trackParent:
			l.parent = f.Value
		case trackName, trackStatic:
			l.name, err = r.str(f.Bytes)
		case trackRank:
			rank = int64(int32(f.Value))
		case trackProcess:
			process = f.Bytes
		case trackThread:
			thread = f.Bytes
		case trackCounter:
			err = r.fields(f.Bytes, func(f protowire.Field) (err error) {
				if f.Number == counterUnit {
					l.unit, err = r.str(f.Bytes)
				}
				return err
			})
		}
		return err
	})
	if err != nil || uuid == 0 { // the root track: how tracks are sorted
		return err
	}
	if r.lanes[uuid] == nil {
		if r.kept++; r.kept > maxIDs {
			return &trace.LimitError{Line: r.packet,
				Problem: fmt.Sprintf("more than %d interned strings and tracks", maxIDs)}
		}
	}
	r.lanes[uuid] = l
	switch {
	case r.head:
		return nil
	case thread != nil:
		return r.thread(l, thread, rank)
	case process != nil:
		return r.process(l, process, rank)
	}
	return nil
}

func (r *reader) process(l *lane, b []byte, rank int64) error {
	l.own = true
	name, labels := l.name, ""
	err := r.fields(b, func(f protowire.Field) (err error) {
		switch f.Number {
		case processPID:
			l.pid = int64(f.Value)
		case processName:
			name, err = r.str(f.Bytes)
		case processLabels:
			labels, err = r.str(f.Bytes)
		}
		return err
	})
	for _, a := range []struct {
		name string
		arg  trace.Arg
	}{{"process_name", trace.Str("name", name)}, {"process_labels", trace.Str("labels", labels)},
		{"process_sort_index", trace.Int("sort_index", rank)}} {
		if err == nil && (a.arg.Kind == trace.IntArg || a.arg.Str != "") {
			err = r.meta(l, a.name, a.arg)
		}
	}
	return err
}

func (r *reader) thread(l *lane, b []byte, rank int64) error {
	l.own = true
	name := l.name
	err := r.fields(b, func(f protowire.Field) (err error) {
		switch f.Number {
		case threadPID:
			l.pid = int64(f.Value)
		case threadTID:
			l.tid = int64(f.Value)
		case threadName:
			name, err = r.str(f.Bytes)
		}
		return err
	})
	if err == nil && name != "" {
		err = r.meta(l, "thread_name", trace.Str("name", name))
	}
	if err != nil {
		return err
	}
	return r.meta(l, "thread_sort_index", trace.Int("sort_index", rank))
}

func (r *reader) meta(l *lane, name string, a trace.Arg) error {
	r.event = Event{Packet: r.packet, Phase: 'M', PID: l.pid, TID: l.tid, Name: name,
		Args: append(r.event.Args[:0], a)}
	return r.pass()
}
