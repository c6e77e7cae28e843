package goal

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// magic is the first value of the binary form, a 64-bit integer.
const magic = 4223

// Sizes of parts of the binary form, in bytes.
const (
	nodeSize   = 39
	afterMagic = 8 // offsets of blocks count from behind the magic number
)

// RecogniseBinary reports whether a file begins like a binary schedule.
func RecogniseBinary(head []byte) bool {
	return len(head) >= 8 && binary.LittleEndian.Uint64(head) == magic
}

// ReadBinary parses a schedule. Its parts may be in any order, so the whole file is read into memory, at most
// 2 GiB. It returns an *Error, or an error of in.
func ReadBinary(in io.Reader, file string) (*File, error) {
	b, err := io.ReadAll(io.LimitReader(in, 2<<30))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	r := binaryReader{file: file}
	if !RecogniseBinary(b) || len(b) < 14 {
		return nil, r.fail(0, fmt.Sprintf("it begins with the number %d in eight bytes", magic),
			"this is no binary GOAL schedule")
	}
	n := binary.LittleEndian.Uint32(b[8:])
	if uint64(n)*16+14 > uint64(len(b)) {
		return nil, r.fail(8, "", "%d ranks do not fit into %d bytes", n, len(b))
	}
	f := &File{Ranks: make([]Rank, n)}
	for i := range f.Ranks {
		at := int64(14 + 16*i)
		begin, end := binary.LittleEndian.Uint64(b[at:]), binary.LittleEndian.Uint64(b[at+8:])
		if begin > end || end > uint64(len(b))-afterMagic {
			return nil, r.fail(at, "", "rank %d is from %d to %d in a file of %d bytes", i, begin, end,
				len(b))
		}
		if err := r.block(&f.Ranks[i], b[afterMagic+begin:afterMagic+end], int64(afterMagic+begin), n); err !=
			nil {
			return nil, err
		}
	}
	return f, nil
}

type binaryReader struct {
	file string
}

func (r *binaryReader) fail(at int64, hint, format string, args ...any) error {
	return &Error{File: r.file, Offset: at, Problem: fmt.Sprintf(format, args...), Hint: hint}
}

// block parses the operations of a rank.
func (r *binaryReader) block(to *Rank, b []byte, at int64, ranks uint32) error {
	if len(b) < 8 {
		return r.fail(at, "", "a rank of %d bytes; there are at least 8", len(b))
	}
	nodes, roots := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	first := 8 + 4*roots
	appendix := first + nodeSize*nodes
	if appendix > uint64(len(b)) {
		return r.fail(at, "", "%d operations and %d beginnings do not fit into %d bytes", nodes, roots,
			len(b))
	}
	links := b[appendix:]
	if nodes > 0 {
		to.Ops = make([]Op, nodes)
	}
	for i := range to.Ops {
		x := b[first+nodeSize*uint64(i):]
		here := at + int64(first) + nodeSize*int64(i)
		op := &to.Ops[i]
		op.Kind = Kind(x[4])
		op.Peer = binary.LittleEndian.Uint32(x[5:])
		op.Size = binary.LittleEndian.Uint64(x[9:])
		op.Tag = binary.LittleEndian.Uint32(x[17:])
		op.CPU, op.NIC = x[21], x[22]
		if op.Kind < Send || op.Kind > Calc {
			return r.fail(here+4, "", "operation %d is of kind %d; known are 1 (send), 2 (recv) and 3 (calc)",
				i, op.Kind)
		}
		if op.Kind != Calc && op.Peer >= ranks && !(op.Kind == Recv && op.Peer == Any) || op.Size >= 1<<62 {
			return r.fail(here+5, "", "operation %d has peer %d of %d ranks and size %d", i, op.Peer, ranks,
				op.Size)
		}
		for k, off := range []int{23, 31} {
			n, from := uint64(binary.LittleEndian.Uint32(x[off:])),
				uint64(binary.LittleEndian.Uint32(x[off+4:]))
			if (from+n)*4 > uint64(len(links)) {
				return r.fail(here+int64(off), "", "operation %d has %d dependents from %d, of %d", i, n,
					from, len(links)/4)
			}
			for j := range n {
				d := uint64(binary.LittleEndian.Uint32(links[(from+j)*4:]))
				if d >= nodes {
					return r.fail(at+int64(appendix+(from+j)*4), "",
						"operation %d depends on %d; there are %d", d, i, nodes)
				}
				if k == 0 {
					to.Ops[d].Requires = append(to.Ops[d].Requires, uint32(i))
				} else {
					to.Ops[d].Starts = append(to.Ops[d].Starts, uint32(i))
				}
			}
		}
	}
	return nil
}

// WriteBinary writes the schedule in LogGOPSim's binary form.
func (f *File) WriteBinary(to io.Writer) error {
	w := bufio.NewWriter(to)
	le := binary.LittleEndian
	var head []byte
	var cpu, nic uint8
	pos := uint64(4 + 2 + 16*len(f.Ranks))
	var table []byte
	for i := range f.Ranks {
		size := uint64(8)
		for k := range f.Ranks[i].Ops {
			op := &f.Ranks[i].Ops[k]
			n := len(op.Requires) + len(op.Starts)
			size += nodeSize + 4*uint64(n)
			if n == 0 {
				size += 4
			}
			cpu, nic = max(cpu, op.CPU), max(nic, op.NIC)
		}
		table = le.AppendUint64(table, pos)
		pos += size
		table = le.AppendUint64(table, pos)
	}
	head = le.AppendUint64(head, magic)
	head = le.AppendUint32(head, uint32(len(f.Ranks)))
	head = append(head, cpu, nic)
	w.Write(head)
	w.Write(table)
	for i := range f.Ranks {
		w.Write(f.Ranks[i].binary())
	}
	return w.Flush()
}

// binary returns the block of a rank in the binary form.
func (r *Rank) binary() []byte {
	le := binary.LittleEndian
	after := make([][2][]uint32, len(r.Ops))
	var roots []uint32
	for i := range r.Ops {
		op := &r.Ops[i]
		if len(op.Requires)+len(op.Starts) == 0 {
			roots = append(roots, uint32(i))
		}
		for _, d := range op.Requires {
			after[d][0] = append(after[d][0], uint32(i))
		}
		for _, d := range op.Starts {
			after[d][1] = append(after[d][1], uint32(i))
		}
	}
	var b, links []byte
	b = le.AppendUint32(b, uint32(len(r.Ops)))
	b = le.AppendUint32(b, uint32(len(roots)))
	for _, n := range roots {
		b = le.AppendUint32(b, n)
	}
	for i := range r.Ops {
		op := &r.Ops[i]
		b = le.AppendUint32(b, uint32(len(op.Requires)+len(op.Starts)))
		b = append(b, byte(op.Kind))
		b = le.AppendUint32(b, op.Peer)
		b = le.AppendUint64(b, op.Size)
		b = le.AppendUint32(b, op.Tag)
		b = append(b, op.CPU, op.NIC)
		for k := range 2 {
			b = le.AppendUint32(b, uint32(len(after[i][k])))
			b = le.AppendUint32(b, uint32(len(links)/4))
			for _, d := range after[i][k] {
				links = le.AppendUint32(links, d)
			}
		}
	}
	return append(b, links...)
}
