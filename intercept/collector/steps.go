package collector

import (
	"encoding/binary"
	"fmt"

	"github.com/simccl/simccl/coll"
)

// stepList is the encoded job of a move, which live-move.c reads: the number of buffers (8 bytes), their
// descriptions (sharedSize each), then steps. A step is a head of 32 bytes and 16 bytes for each place in a
// buffer: inputs, then outputs; a scaled reduction ends with a scalar of 8 bytes for each input.
type stepList struct {
	buffers []byte
	count   uint64
	index   map[*byte]uint32
	steps   []byte
	err     error
}

// stepRank is what a rank gives to a call: its three buffers as other processes find them, and the
// scalar of its input.
type stepRank struct {
	Shared  []byte
	Scalar  uint64
	Pointer bool // the scalar is in the memory of a device
}

type stepCall struct {
	Name   string // in errors
	Func   coll.Func
	Type   coll.DataType
	RedOp  int32
	Scaled bool  // a sum of scaled inputs
	Count  int64 // elements
	Root   int32
}

// side is a buffer of a call.
type side int

const (
	sendSide side = iota
	recvSide
)

// sharedSize is the size of a buffer's description.
const sharedSize = 96

func newStepList() *stepList { return &stepList{index: map[*byte]uint32{}} }

// place names an offset in a rank's buffer.
func (j *stepList) place(name string, o *stepRank, s side, offset int64) []byte {
	if len(o.Shared) < 3*sharedSize {
		j.err = fmt.Errorf("%s: its buffers are not known", name)
		return nil
	}
	b := o.Shared[int(s)*sharedSize:][:sharedSize]
	i, ok := j.index[&b[0]]
	if !ok {
		i = uint32(j.count)
		j.index[&b[0]] = i
		j.buffers = append(j.buffers, b...)
		j.count++
	}
	out := binary.LittleEndian.AppendUint32(nil, i)
	return binary.LittleEndian.AppendUint64(append(out, 0, 0, 0, 0), uint64(offset))
}

func (j *stepList) head(kind, typ, op, n, m int32, count int64) {
	for _, v := range []int32{kind, typ, op, n, m, 0} {
		j.steps = binary.LittleEndian.AppendUint32(j.steps, uint32(v))
	}
	j.steps = binary.LittleEndian.AppendUint64(j.steps, uint64(count))
}

// Copy adds a copy of n bytes from an offset of a rank's input to one of another rank's output.
func (j *stepList) Copy(name string, from *stepRank, at int64, to *stepRank, dst, n int64) {
	j.head(0, 0, 0, 1, 1, n)
	j.steps = append(append(j.steps, j.place(name, from, sendSide, at)...),
		j.place(name, to, recvSide, dst)...)
}

// reduces reduces the elements at an offset of all ranks' inputs into those of to.
func (j *stepList) reduces(c *stepCall, all []*stepRank, offset int64, to []*stepRank) {
	if c.Type.IsFloat() && c.Type.Size() == 1 {
		j.err = fmt.Errorf("%s: reductions of 8-bit floats are not built for real GPUs", c.Name)
		return
	}
	j.head(1, int32(c.Type), c.RedOp, int32(len(all)), int32(len(to)), c.Count)
	for _, x := range all {
		j.steps = append(j.steps, j.place(c.Name, x, sendSide, offset)...)
	}
	for _, x := range to {
		j.steps = append(j.steps, j.place(c.Name, x, recvSide, 0)...)
	}
	if !c.Scaled {
		return
	}
	for _, x := range all {
		if x.Pointer {
			j.err = fmt.Errorf("%s: a scalar in the memory of a device is not built for real GPUs", c.Name)
		}
		j.steps = binary.LittleEndian.AppendUint64(j.steps, x.Scalar)
	}
}

// Bytes is the list as the process reads it. The error is of a step that could not be added.
func (j *stepList) Bytes() ([]byte, error) {
	return append(append(binary.LittleEndian.AppendUint64(nil, j.count), j.buffers...), j.steps...), j.err
}

// collective adds a collective of all ranks.
func (j *stepList) collective(c *stepCall, all []*stepRank) {
	size, root := c.Count*int64(c.Type.Size()), all[c.Root]
	switch c.Func {
	case coll.AllReduce:
		j.reduces(c, all, 0, all)
	case coll.Reduce:
		j.reduces(c, all, 0, []*stepRank{root})
	case coll.ReduceScatter:
		for r, to := range all {
			j.reduces(c, all, int64(r)*size, []*stepRank{to})
		}
	case coll.Broadcast:
		for _, to := range all {
			j.Copy(c.Name, root, 0, to, 0, size)
		}
	case coll.AllGather, coll.AllToAll:
		for r, to := range all {
			for s, from := range all {
				at := int64(0)
				if c.Func == coll.AllToAll {
					at = int64(r) * size
				}
				j.Copy(c.Name, from, at, to, int64(s)*size, size)
			}
		}
	case coll.Gather:
		for r, from := range all {
			j.Copy(c.Name, from, 0, root, int64(r)*size, size)
		}
	case coll.Scatter:
		for r, to := range all {
			j.Copy(c.Name, root, int64(r)*size, to, 0, size)
		}
	default:
		j.err = fmt.Errorf("%s: its data is not moved", c.Name)
	}
}
