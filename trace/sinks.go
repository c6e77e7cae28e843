package trace

import (
	"errors"
)

// Tee returns a sink that forwards all events to each of the given sinks.
func Tee(sinks ...Sink) Sink {
	switch len(sinks) {
	case 0:
		return Discard
	case 1:
		return sinks[0]
	}
	return &tee{sinks: sinks}
}

type tee struct {
	sinks []Sink
	ids   [][]TrackID // our track id → each sink's id
	known map[[2]int64]TrackID
}

func (t *tee) Track(tr Track) TrackID {
	key := [2]int64{tr.Process, tr.Thread}
	if id, ok := t.known[key]; ok {
		return id
	}
	row := make([]TrackID, len(t.sinks))
	for i, s := range t.sinks {
		row[i] = s.Track(tr)
	}
	if t.known == nil {
		t.known = make(map[[2]int64]TrackID)
	}
	id := TrackID(len(t.ids))
	t.ids = append(t.ids, row)
	t.known[key] = id
	return id
}

func (t *tee) Emit(e *Event) {
	own := e.Track
	for i, s := range t.sinks {
		e.Track = t.ids[own][i]
		s.Emit(e)
	}
	e.Track = own
}

// Order forwards a process's position to those sinks that are Orderers.
func (t *tee) Order(process, sort int64) {
	for _, s := range t.sinks {
		if o, ok := s.(Orderer); ok {
			o.Order(process, sort)
		}
	}
}

func (t *tee) Close() error {
	var errs []error
	for _, s := range t.sinks {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Memory is a Sink that stores all events: for tests, merging and reports of bounded size.
type Memory struct {
	Tracks []Track
	Events []Event
	known  map[[2]int64]TrackID
}

// Track registers a lane.
func (m *Memory) Track(t Track) TrackID {
	key := [2]int64{t.Process, t.Thread}
	if id, ok := m.known[key]; ok {
		return id
	}
	if m.known == nil {
		m.known = make(map[[2]int64]TrackID)
	}
	id := TrackID(len(m.Tracks))
	m.Tracks = append(m.Tracks, t)
	m.known[key] = id
	return id
}

// Emit keeps a copy of the event and its arguments.
func (m *Memory) Emit(e *Event) {
	c := *e
	c.Args = append([]Arg(nil), e.Args...)
	m.Events = append(m.Events, c)
}

// Close does nothing; events stay readable.
func (m *Memory) Close() error { return nil }

// Str returns a string argument.
func Str(key, value string) Arg { return Arg{Key: key, Kind: StringArg, Str: value} }

// Int returns an integer argument.
func Int(key string, value int64) Arg { return Arg{Key: key, Kind: IntArg, Int: value} }

// Num returns a floating-point argument; value must be finite.
func Num(key string, value float64) Arg { return Arg{Key: key, Kind: FloatArg, Num: value} }
