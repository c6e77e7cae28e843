// Package pack keeps events of a trace in few bytes, in memory and in a spool, and
// gives them back in the order of time.
package pack

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/trace"
)

// Key orders events as viewers need them: by start, the longer first (so a
// parent comes before its child), then by track; equal keys keep the order in
// which they were emitted.
type Key struct{ TS, Dur int64 }

// Record is one kept event of a batch.
type Record struct {
	Key
	Track    int32
	off, Len uint32
}

// Order compares events that may be of any track.
type Order struct {
	// At returns the process and thread of a track.
	At func(track int32) (process, thread int64)
	// Single: all events of a process are on one thread.
	Single bool
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
	p, s := o.At(x)
	q, t := o.At(y)
	if c := cmp.Compare(p, q); c != 0 || o.Single {
		return c
	}
	return cmp.Compare(s, t)
}

// Batch is a bounded number of events, sorted as a whole.
type Batch struct {
	Data  []byte
	Recs  []Record
	Order Order // of the tracks that were known when it was full
	late  bool  // events came out of order
}

// Reset empties it.
func (b *Batch) Reset() { b.Data, b.Recs, b.late = b.Data[:0], b.Recs[:0], false }

// Size is about what the batch takes.
func (b *Batch) Size() int { return len(b.Data) + recordSize*len(b.Recs) }

const recordSize = 32

// A batch has room for firstRecords events at first, and spare bytes for the next one, which
// is mostly shorter.
const (
	firstRecords = 1 << 13
	spare        = 1 << 10
)

// Add notes the event whose bytes begin at off.
func (b *Batch) Add(k Key, t trace.TrackID, off int) {
	n := len(b.Recs)
	if n == cap(b.Recs) { // append's own growth by quarters copies a batch many times
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

// Sorter is the memory for sorting batches.
type Sorter struct {
	a, b []place
	recs []Record
}

// place is where an event of a time is.
type place struct {
	TS int64
	at uint32
}

// Sort puts a batch in order: by time with counting sorts, which know that times are
// not negative and near each other, then what is of one time by comparison.
func (s *Sorter) Sort(b *Batch) {
	if !b.late {
		return
	}
	n := len(b.Recs)
	s.a, s.b = slices.Grow(s.a[:0], n)[:n], slices.Grow(s.b[:0], n)[:n]
	differ := int64(0)
	for i := range b.Recs {
		s.a[i] = place{b.Recs[i].TS, uint32(i)}
		differ |= b.Recs[i].TS ^ b.Recs[0].TS
	}
	for shift := 0; differ>>shift != 0; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var next [256]int
		for i := range s.a {
			next[s.a[i].TS>>shift&0xff]++
		}
		sum := 0
		for d, k := range next {
			next[d], sum = sum, sum+k
		}
		for _, p := range s.a {
			d := p.TS >> shift & 0xff
			s.b[next[d]] = p
			next[d]++
		}
		s.a, s.b = s.b, s.a
	}
	s.recs = slices.Grow(s.recs[:0], n)[:n]
	for i, p := range s.a {
		s.recs[i] = b.Recs[p.at]
	}
	b.Recs, s.recs = s.recs, b.Recs
	compare := func(x, y Record) int { return b.Order.compare(x.Key, y.Key, x.Track, y.Track) }
	for from := 0; from < n; {
		to := from + 1
		for to < n && b.Recs[to].TS == b.Recs[from].TS {
			to++
		}
		if same := b.Recs[from:to]; len(same) > 1 && !slices.IsSortedFunc(same, compare) {
			slices.SortStableFunc(same, compare)
		}
		from = to
	}
}

// HeadSize is what precedes the bytes of an event.
const HeadSize = 24

// AppendHead appends what precedes the bytes of an event.
func AppendHead(b []byte, r *Record) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.TS))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Dur))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.Track))
	return binary.LittleEndian.AppendUint32(b, r.Len)
}

// ReadHead reads it back.
func ReadHead(b []byte) (r Record) {
	_ = b[HeadSize-1]
	r.TS, r.Dur = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	r.Track, r.Len = int32(binary.LittleEndian.Uint32(b[16:])), binary.LittleEndian.Uint32(b[20:])
	return r
}

// Bytes are those of an event.
func (b *Batch) Bytes(r *Record) []byte { return b.Data[r.off : r.off+r.Len] }

// Spill appends the sorted batch to the spool.
func (b *Batch) Spill(w *bufio.Writer) (size int64, err error) {
	var head []byte
	for i := range b.Recs {
		r := &b.Recs[i]
		head = AppendHead(head[:0], r)
		if _, err = w.Write(head); err != nil {
			return size, err
		}
		if _, err = w.Write(b.Data[r.off : r.off+r.Len]); err != nil {
			return size, err
		}
		size += HeadSize + int64(r.Len)
	}
	return size, w.Flush()
}

// Run reads one spilled batch back.
type Run struct {
	In    *bufio.Reader
	rec   Record
	nth   int
	event []byte // head and bytes
	long  bool   // event is not in the buffer
	done  bool
}

// RunBuffer is the size of a run's buffer.
const RunBuffer = 1 << 16

func (r *Run) next() error {
	if !r.long {
		_, _ = r.In.Discard(len(r.event)) // it is buffered
	}
	head, err := r.In.Peek(HeadSize)
	if err == io.EOF && len(head) == 0 {
		r.done = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	r.rec = ReadHead(head)
	n := HeadSize + int(r.rec.Len)
	if r.long = n > r.In.Size(); r.long {
		r.event = make([]byte, n)
		_, err = io.ReadFull(r.In, r.event)
	} else {
		r.event, err = r.In.Peek(n)
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// Merge gives all events of the runs in order to each; of equal keys the earlier
// run goes first. The runs are a heap; the first is read for as long as it stays
// first, which is nearly always its whole length.
func Merge(o *Order, runs []*Run, each func(event []byte) error) error {
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
		if err := each(r.event); err != nil {
			return err
		}
		if err := r.next(); err != nil {
			return err
		}
		if r.done {
			runs[0] = runs[len(runs)-1]
			runs = runs[:len(runs)-1]
		}
		sink(0)
	}
	return nil
}
