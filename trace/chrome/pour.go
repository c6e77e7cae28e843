package chrome

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"

	"github.com/simccl/simccl/trace/internal/pack"
	"github.com/simccl/simccl/trace/perfetto"
)

// portion is a part of the file: packed events, which are converted to text, which may be compressed. Several
// goroutines convert portions, which are written in order; their borders depend on the events only.
type portion struct {
	events []byte
	n      int64
	text   []byte
	packed []byte
	ready  chan struct{}
	err    error // set instead of events if they could not be read
}

// portionBytes is the size of a portion in packed bytes, a third of a megabyte of text.
const portionBytes = 96 << 10

var errStopped = errors.New("nothing is written any more")

// pour writes a head, the text of the events that body returns, and a tail.
func (w *Writer) pour(head []byte, body func(each func(r *pack.Record, event []byte) error) error,
	tail []byte) error {
	workers := runtime.GOMAXPROCS(0)
	todo, order := make(chan *portion, workers), make(chan *portion, 2*workers)
	free, stop := make(chan *portion, 4*workers), make(chan struct{})
	for range workers {
		go w.prepare(todo)
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer close(order)
		defer close(todo)
		w.cut(head, body, tail, free, func(p *portion) error {
			select {
			case <-stop:
				return errStopped
			case order <- p:
			}
			todo <- p // a worker takes it; workers wait for nothing else
			return nil
		})
	}()
	err := w.output(order, free)
	close(stop)
	for p := range order { // drain portions in progress after a failure
		<-p.ready
	}
	<-finished
	return err
}

// cut divides the head, all events and the tail into portions.
func (w *Writer) cut(head []byte, body func(each func(r *pack.Record, event []byte) error) error, tail []byte,
	free <-chan *portion, give func(*portion) error) {
	fresh := func() *portion {
		select {
		case p := <-free:
			p.events, p.n, p.text = p.events[:0], 0, p.text[:0]
			p.packed = p.packed[:0]
			p.ready = make(chan struct{})
			return p
		default:
			return &portion{events: make([]byte, 0, portionBytes+1<<10),
				text: make([]byte, 0, 4*portionBytes), ready: make(chan struct{})}
		}
	}
	if give(&portion{text: head, ready: make(chan struct{})}) != nil {
		return
	}
	p := fresh()
	err := body(func(r *pack.Record, event []byte) error {
		p.events = append(pack.AppendHead(p.events, r), event...)
		if event[0] != pack.SliceEnd { // its begin was counted
			p.n++
		}
		if len(p.events) < portionBytes {
			return nil
		}
		full := p
		p = fresh()
		return give(full)
	})
	if errors.Is(err, errStopped) {
		return
	}
	if p.err = err; give(p) == nil && err == nil {
		_ = give(&portion{text: tail, ready: make(chan struct{})})
	}
}

// prepare converts and compresses portions, as one of several workers.
func (w *Writer) prepare(todo <-chan *portion) {
	compress := w.packing.packer()
	text := encoder{w: w}
	var proto *perfetto.Encoder
	if w.proto != nil {
		proto = w.proto.Encoder()
	}
	var e pack.Packed
	for p := range todo {
		for b := p.events; len(b) > 0; {
			r := pack.ReadHead(b)
			e.Key, e.Track = r.Key, r.Track
			b = b[pack.HeadSize:]
			w.tables.Unpack(&e, b[:r.Len])
			if b = b[r.Len:]; proto != nil {
				p.text = proto.Append(p.text, &e)
				continue
			}
			p.text = text.event(p.text, &e)
		}
		if compress != nil {
			p.packed = compress(p.packed, p.text)
		}
		close(p.ready)
	}
}

// output writes portions as they become ready; compressed files are one gzip member, or a zstd frame for each
// portion.
func (w *Writer) output(order <-chan *portion, free chan<- *portion) error {
	out := &polled{w.out, w.cancelled}
	sum, size := uint32(0), uint32(0)
	if w.packing == gzipped {
		if _, err := out.Write(gzipHead); err != nil {
			return err
		}
	}
	for p := range order {
		<-p.ready
		if p.err != nil {
			return p.err
		}
		data := p.text
		if w.packing == gzipped {
			sum, size = crc32.Update(sum, crc32.IEEETable, p.text), size+uint32(len(p.text))
		}
		if w.packing != plain {
			data = p.packed
		}
		if _, err := out.Write(data); err != nil {
			return err
		}
		w.written.Add(p.n)
		select {
		case free <- p:
		default:
		}
	}
	if w.packing != gzipped {
		return nil
	}
	end := binary.LittleEndian.AppendUint32(append([]byte(nil), gzipEnd...), sum)
	_, err := out.Write(binary.LittleEndian.AppendUint32(end, size))
	return err
}
