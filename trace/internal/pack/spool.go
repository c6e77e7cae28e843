// Package pack stores events of a trace compactly, in memory and in a spool, and returns them in the order of
// time.
package pack

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/trace"
)

// Key orders events as viewers need them: by start, then the longer first (so a parent comes before its
// child), then by track; equal keys stay in the order of emission.
type Key struct{ TS, Dur int64 }

// Record locates one event of a batch.
type Record struct {
	Key
	Track    int32
	off, Len uint32
}

// Order compares events on any two tracks.
type Order struct {
	// Rank is, by track, its position in the order of processes and threads; equal ranks share a thread.
	Rank []int32
}

func (o *Order) compare(a, b Key, x, y int32) int {
	switch {
	case a.TS != b.TS:
		return cmp.Compare(a.TS, b.TS)
	case a.Dur != b.Dur:
		return cmp.Compare(b.Dur, a.Dur)
	case x == y:
		return 0
	}
	return cmp.Compare(o.Rank[x], o.Rank[y])
}

// Batch is a bounded number of events that are sorted together.
type Batch struct {
	Data  []byte
	Recs  []Record // in the order of emission
	Order Order    // of the tracks known when the batch was full
	late  bool     // events were not emitted in order
	order []uint64 // of a sorted batch: times and record numbers; nil if records are in order
	bits  int      // number of bits of a record number in order
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Data, b.Recs, b.late, b.order = b.Data[:0], b.Recs[:0], false, nil
}

// Size returns the approximate memory of the batch in bytes.
func (b *Batch) Size() int { return len(b.Data) + recordSize*len(b.Recs) }

const recordSize = 32

// A batch initially has room for firstRecords events, and spare bytes for the next one, which is mostly
// shorter.
const (
	firstRecords = 1 << 13
	spare        = 1 << 10
)

// Add records the event whose bytes begin at off in Data.
func (b *Batch) Add(k Key, t trace.TrackID, off int) {
	n := len(b.Recs)
	if n == cap(b.Recs) { // append's growth by quarters would copy a batch many times
		b.Recs = slices.Grow(b.Recs, max(n, firstRecords))
	}
	if cap(b.Data)-len(b.Data) < spare {
		b.Data = slices.Grow(b.Data, max(len(b.Data), spare*256))
	}
	b.Recs = append(b.Recs, Record{k, int32(t), uint32(off), uint32(len(b.Data) - off)})
	if n > 0 && !b.late {
		l := &b.Recs[n-1]
		b.late = k.TS < l.TS || k.TS == l.TS && int32(t) != l.Track || k.TS == l.TS && k.Dur > l.Dur
	}
}

// At returns the i-th event in order, of a sorted batch.
func (b *Batch) At(i int) *Record {
	if b.order == nil {
		return &b.Recs[i]
	}
	return b.record(b.order[i])
}

// record returns the record of an element of order.
func (b *Batch) record(at uint64) *Record { return &b.Recs[at&(1<<b.bits-1)] }

// Bytes returns the encoding of a record's event.
func (b *Batch) Bytes(r *Record) []byte { return b.Data[r.off : r.off+r.Len] }

// HeadSize is the size of a record's head, which precedes the event in a spool.
const HeadSize = 24

// AppendHead appends the head of a record: start, duration, track, length of the event.
func AppendHead(b []byte, r *Record) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.TS))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Dur))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.Track))
	return binary.LittleEndian.AppendUint32(b, r.Len)
}

// ReadHead decodes a record's head.
func ReadHead(b []byte) (r Record) {
	_ = b[HeadSize-1]
	r.TS, r.Dur = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	r.Track, r.Len = int32(binary.LittleEndian.Uint32(b[16:])), binary.LittleEndian.Uint32(b[20:])
	return r
}

// Run reads one spilled batch back.
type Run struct {
	In       io.Reader
	buf      []byte
	from, to int // range of the buffer that is read but not yet used
	rec      Record
	nth      int
	event    []byte
	done     bool
}

// RunBuffer is the size of a run's buffer.
const RunBuffer = 1 << 16

func (r *Run) next() error {
	switch err := r.fill(HeadSize); {
	case err == io.EOF:
		r.done = true
		return nil
	case err != nil:
		return fmt.Errorf("spool: %w", err)
	}
	r.rec = ReadHead(r.buf[r.from:])
	n := HeadSize + int(r.rec.Len)
	if err := r.fill(n); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	r.event = r.buf[r.from+HeadSize : r.from+n]
	r.from += n
	return nil
}

// fill reads until n bytes are buffered; io.EOF at the end of the run.
func (r *Run) fill(n int) error {
	if r.to-r.from >= n {
		return nil
	}
	buf := r.buf
	if len(buf) < n {
		buf = make([]byte, max(n, RunBuffer))
	}
	r.to, r.buf = copy(buf, r.buf[r.from:r.to]), buf
	r.from = 0
	k, err := io.ReadAtLeast(r.In, buf[r.to:], n-r.to)
	if r.to > 0 && err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	r.to += k
	return err
}

// Merge calls each for all events of the runs in order; of equal keys the earlier run goes first. The runs
// are a heap; the first is read as long as it stays first, which is nearly always its whole length.
func Merge(o *Order, runs []*Run, each func(r *Record, event []byte) error) error {
	before := func(a, b *Run) bool {
		if c := o.compare(a.rec.Key, b.rec.Key, a.rec.Track, b.rec.Track); c != 0 {
			return c < 0
		}
		return a.nth < b.nth
	}
	sink := func(i int) {
		for {
			least := i
			for _, c := range [...]int{2*i + 1, 2*i + 2} {
				if c < len(runs) && before(runs[c], runs[least]) {
					least = c
				}
			}
			if least == i {
				return
			}
			runs[i], runs[least] = runs[least], runs[i]
			i = least
		}
	}
	for i, r := range runs {
		r.nth = i
		if err := r.next(); err != nil {
			return err
		}
	}
	runs = slices.DeleteFunc(runs, func(r *Run) bool { return r.done })
	for i := len(runs)/2 - 1; i >= 0; i-- {
		sink(i)
	}
	for len(runs) > 0 {
		r := runs[0]
		rival := second(runs, before)
		for !r.done && (rival == nil || !before(rival, r)) {
			if err := each(&r.rec, r.event); err != nil {
				return err
			}
			if err := r.next(); err != nil {
				return err
			}
		}
		if r.done {
			runs[0] = runs[len(runs)-1]
			runs = runs[:len(runs)-1]
		}
		sink(0)
	}
	return nil
}

// second returns the run of a heap that follows the first; nil if there is none.
func second(runs []*Run, before func(a, b *Run) bool) *Run {
	switch {
	case len(runs) < 2:
		return nil
	case len(runs) > 2 && before(runs[2], runs[1]):
		return runs[2]
	}
	return runs[1]
}
