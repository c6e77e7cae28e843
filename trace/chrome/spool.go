package chrome

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/simccl/simccl/trace"
)

// key orders events as viewers need them: by start, the longer first (so a
// parent comes before its child), then by track; equal keys keep the order in
// which they were emitted.
type key struct{ ts, dur int64 }

// record is one kept event of a batch.
type record struct {
	key
	track    int32
	off, len uint32
}

// order compares events that may be of any track.
type order struct {
	tracks []track
	// alike: all events of a process are on one thread.
	alike bool
}

func (o *order) compare(a, b key, x, y int32) int {
	switch {
	case a.ts != b.ts:
		return cmp.Compare(a.ts, b.ts)
	case a.dur != b.dur:
		return cmp.Compare(b.dur, a.dur)
	case x == y:
		return 0
	}
	s, t := &o.tracks[x].Track, &o.tracks[y].Track
	if c := cmp.Compare(s.Process, t.Process); c != 0 || o.alike {
		return c
	}
	return cmp.Compare(s.Thread, t.Thread)
}

// batch is a bounded number of events, sorted as a whole.
type batch struct {
	data  []byte
	recs  []record
	order order // of the tracks that were known when it was full
	late  bool  // events came out of order
}

func (b *batch) reset() { b.data, b.recs, b.late = b.data[:0], b.recs[:0], false }

// size is about what the batch takes.
func (b *batch) size() int { return len(b.data) + recordSize*len(b.recs) }

const recordSize = 32

// add notes the event whose bytes begin at off.
func (b *batch) add(k key, t trace.TrackID, off int) {
	n := len(b.recs)
	b.recs = append(b.recs, record{k, int32(t), uint32(off), uint32(len(b.data) - off)})
	if n > 0 && !b.late {
		l := &b.recs[n-1]
		b.late = k.ts < l.ts || k.ts == l.ts && int32(t) != l.track || k.ts == l.ts && k.dur > l.dur
	}
}

// sorter is the memory for sorting batches.
type sorter struct {
	a, b []place
	recs []record
}

// place is where an event of a time is.
type place struct {
	ts int64
	at uint32
}

// sort puts a batch in order: by time with counting sorts, which know that times are
// not negative and near each other, then what is of one time by comparison.
func (s *sorter) sort(b *batch) {
	if !b.late {
		return
	}
	n := len(b.recs)
	s.a, s.b = slices.Grow(s.a[:0], n)[:n], slices.Grow(s.b[:0], n)[:n]
	differ := int64(0)
	for i := range b.recs {
		s.a[i] = place{b.recs[i].ts, uint32(i)}
		differ |= b.recs[i].ts ^ b.recs[0].ts
	}
	for shift := 0; differ>>shift != 0; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var next [256]int
		for i := range s.a {
			next[s.a[i].ts>>shift&0xff]++
		}
		sum := 0
		for d, k := range next {
			next[d], sum = sum, sum+k
		}
		for _, p := range s.a {
			d := p.ts >> shift & 0xff
			s.b[next[d]] = p
			next[d]++
		}
		s.a, s.b = s.b, s.a
	}
	s.recs = slices.Grow(s.recs[:0], n)[:n]
	for i, p := range s.a {
		s.recs[i] = b.recs[p.at]
	}
	b.recs, s.recs = s.recs, b.recs
	compare := func(x, y record) int { return b.order.compare(x.key, y.key, x.track, y.track) }
	for from := 0; from < n; {
		to := from + 1
		for to < n && b.recs[to].ts == b.recs[from].ts {
			to++
		}
		if same := b.recs[from:to]; len(same) > 1 && !slices.IsSortedFunc(same, compare) {
			slices.SortStableFunc(same, compare)
		}
		from = to
	}
}

// headSize is what stands before the bytes of an event.
const headSize = 24

func appendHead(b []byte, r *record) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(r.ts))
	b = binary.LittleEndian.AppendUint64(b, uint64(r.dur))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.track))
	return binary.LittleEndian.AppendUint32(b, r.len)
}

func readHead(b []byte) (r record) {
	_ = b[headSize-1]
	r.ts, r.dur = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	r.track, r.len = int32(binary.LittleEndian.Uint32(b[16:])), binary.LittleEndian.Uint32(b[20:])
	return r
}

// spill appends the sorted batch to the spool.
func (b *batch) spill(w *bufio.Writer) (size int64, err error) {
	var head []byte
	for i := range b.recs {
		r := &b.recs[i]
		head = appendHead(head[:0], r)
		if _, err = w.Write(head); err != nil {
			return size, err
		}
		if _, err = w.Write(b.data[r.off : r.off+r.len]); err != nil {
			return size, err
		}
		size += headSize + int64(r.len)
	}
	return size, w.Flush()
}

// run reads one spilled batch back.
type run struct {
	in    *bufio.Reader
	rec   record
	nth   int
	event []byte // head and bytes
	long  bool   // event is not in the buffer
	done  bool
}

const runBuffer = 1 << 16

func (r *run) next() error {
	if !r.long {
		_, _ = r.in.Discard(len(r.event)) // it is buffered
	}
	head, err := r.in.Peek(headSize)
	if err == io.EOF && len(head) == 0 {
		r.done = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	r.rec = readHead(head)
	n := headSize + int(r.rec.len)
	if r.long = n > r.in.Size(); r.long {
		r.event = make([]byte, n)
		_, err = io.ReadFull(r.in, r.event)
	} else {
		r.event, err = r.in.Peek(n)
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}

// merge gives all events of the runs in order to each; of equal keys the earlier
// run goes first. The runs are a heap; the first is read for as long as it stays
// first, which is nearly always its whole length.
func merge(o *order, runs []*run, each func(event []byte) error) error {
	before := func(a, b *run) bool {
		if c := o.compare(a.rec.key, b.rec.key, a.rec.track, b.rec.track); c != 0 {
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
	runs = slices.DeleteFunc(runs, func(r *run) bool { return r.done })
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
