package chrome

import (
	"fmt"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome/internal/wire"
)

// descriptor notes a track, and gives its names as a Chrome trace has them.
func (r *protoReader) descriptor(b []byte) error {
	var uuid uint64
	l := &lane{unit: "value"}
	var rank int64
	var process, thread []byte
	err := r.fields(b, func(f wire.Field) (err error) {
		switch f.Number {
		case wire.TrackUUID:
			uuid = f.Value
		case wire.TrackParent:
			l.parent = f.Value
		case wire.TrackName, wire.TrackStatic:
			l.name, err = r.str(f.Bytes)
		case wire.TrackRank:
			rank = int64(int32(f.Value))
		case wire.TrackProcess:
			process = f.Bytes
		case wire.TrackThread:
			thread = f.Bytes
		case wire.TrackCounter:
			err = r.fields(f.Bytes, func(f wire.Field) (err error) {
				if f.Number == wire.CounterUnit {
					l.unit, err = r.str(f.Bytes)
				}
				return err
			})
		}
		return err
	})
	if err != nil || uuid == 0 { // the root: how tracks are sorted
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

func (r *protoReader) process(l *lane, b []byte, rank int64) error {
	l.own = true
	name, labels := l.name, ""
	err := r.fields(b, func(f wire.Field) (err error) {
		switch f.Number {
		case wire.ProcessPID:
			l.pid = int64(f.Value)
		case wire.ProcessName:
			name, err = r.str(f.Bytes)
		case wire.ProcessLabels:
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

func (r *protoReader) thread(l *lane, b []byte, rank int64) error {
	l.own = true
	name := l.name
	err := r.fields(b, func(f wire.Field) (err error) {
		switch f.Number {
		case wire.ThreadPID:
			l.pid = int64(f.Value)
		case wire.ThreadTID:
			l.tid = int64(f.Value)
		case wire.ThreadName:
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

func (r *protoReader) meta(l *lane, name string, a trace.Arg) error {
	r.event = Event{Line: r.packet, Phase: 'M', PID: l.pid, TID: l.tid, Name: name,
		Args: append(r.event.Args[:0], a)}
	return r.pass()
}
