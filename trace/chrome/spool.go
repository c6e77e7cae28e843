package chrome

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
)

// key orders events as viewers need them: by start, the longer first (so a
// parent comes before its child), then by track; equal keys keep the order in
// which they were emitted.
type key struct{ ts, dur, pid, tid int64 }

func (k key) compare(o key) int {
	switch {
	case k.ts != o.ts:
		return cmp.Compare(k.ts, o.ts)
	case k.dur != o.dur:
		return cmp.Compare(o.dur, k.dur)
	case k.pid != o.pid:
		return cmp.Compare(k.pid, o.pid)
	}
	return cmp.Compare(k.tid, o.tid)
}

// record is one printed event of a batch.
type record struct {
	key
	off, len uint32
}

// batch is a bounded number of printed events, sorted as a whole.
type batch struct {
	text []byte
	recs []record
	last key
	sort bool // events came out of order
}

func (b *batch) reset() { b.text, b.recs, b.sort = b.text[:0], b.recs[:0], false }

func (b *batch) add(k key, off int) {
	if n := len(b.recs); n > 0 && b.last.compare(k) > 0 {
		b.sort = true
	}
	b.last = k
	b.recs = append(b.recs, record{k, uint32(off), uint32(len(b.text) - off)})
}

func (b *batch) order() {
	if b.sort {
		slices.SortFunc(b.recs, func(x, y record) int {
			if c := x.compare(y.key); c != 0 {
				return c
			}
			return cmp.Compare(x.off, y.off)
		})
	}
}

const headSize = 36

// spill appends the sorted batch to the spool.
func (b *batch) spill(w *bufio.Writer) (size int64, err error) {
	var head [headSize]byte
	for i := range b.recs {
		r := &b.recs[i]
		binary.LittleEndian.PutUint64(head[0:], uint64(r.ts))
		binary.LittleEndian.PutUint64(head[8:], uint64(r.dur))
		binary.LittleEndian.PutUint64(head[16:], uint64(r.pid))
		binary.LittleEndian.PutUint64(head[24:], uint64(r.tid))
		binary.LittleEndian.PutUint32(head[32:], r.len)
		if _, err = w.Write(head[:]); err != nil {
			return size, err
		}
		if _, err = w.Write(b.text[r.off : r.off+r.len]); err != nil {
			return size, err
		}
		size += headSize + int64(r.len)
	}
	return size, w.Flush()
}

// run reads one spilled batch back.
type run struct {
	in   *bufio.Reader
	key  key
	len  int
	done bool
}

func (r *run) next() error {
	head, err := r.in.Peek(headSize)
	if err == io.EOF && len(head) == 0 {
		r.done = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	r.key = key{int64(binary.LittleEndian.Uint64(head[0:])), int64(binary.LittleEndian.Uint64(head[8:])),
		int64(binary.LittleEndian.Uint64(head[16:])), int64(binary.LittleEndian.Uint64(head[24:]))}
	r.len = int(binary.LittleEndian.Uint32(head[32:]))
	_, err = r.in.Discard(headSize)
	return err
}

// copyTo writes the current event's text and moves on.
func (r *run) copyTo(w *bufio.Writer) error {
	for r.len > 0 {
		part, err := r.in.Peek(min(r.len, r.in.Size()))
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		if _, err := w.Write(part); err != nil {
			return err
		}
		_, _ = r.in.Discard(len(part))
		r.len -= len(part)
	}
	return r.next()
}

// merge writes all runs in key order; of equal keys the earlier run goes
// first. The run with the least key is copied for as long as it stays least,
// which is nearly always its whole length. It counts the events in written.
func merge(w *bufio.Writer, runs []*run, written *atomic.Int64) error {
	for _, r := range runs {
		if err := r.next(); err != nil {
			return err
		}
	}
	for {
		least, second := -1, -1
		for i, r := range runs {
			switch {
			case r.done:
			case least < 0 || r.key.compare(runs[least].key) < 0:
				least, second = i, least
			case second < 0 || r.key.compare(runs[second].key) < 0:
				second = i
			}
		}
		if least < 0 {
			return nil
		}
		r := runs[least]
		for !r.done {
			if second >= 0 {
				c := r.key.compare(runs[second].key)
				if c > 0 || c == 0 && second < least {
					break
				}
			}
			if err := r.copyTo(w); err != nil {
				return err
			}
			written.Add(1)
		}
	}
}
