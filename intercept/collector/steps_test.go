package collector

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/simccl/simccl/coll"
)

// TestBroadcast: a buffer that several steps use is listed once; a step is a copy's head and its
// two places.
func TestBroadcast(t *testing.T) {
	ranks := make([]*stepRank, 3)
	for r := range ranks {
		ranks[r] = &stepRank{Shared: bytes.Repeat([]byte{byte(r + 1)}, 3*sharedSize)}
	}
	j := newStepList()
	j.collective(&stepCall{Name: "broadcast", Func: coll.Broadcast, Type: coll.Float32, Count: 10, Root: 1},
		ranks)
	got, err := j.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	want := binary.LittleEndian.AppendUint64(nil, 4)
	for _, r := range []byte{2, 1, 2, 3} { // the root's input, then outputs
		want = append(want, bytes.Repeat([]byte{r}, sharedSize)...)
	}
	for to := range uint64(3) {
		for _, v := range []uint32{0, 0, 0, 1, 1, 0} {
			want = binary.LittleEndian.AppendUint32(want, v)
		}
		for _, v := range []uint64{40, 0, 0, to + 1, 0} {
			want = binary.LittleEndian.AppendUint64(want, v)
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes, and not\n%x", len(got), want)
	}
	j.collective(&stepCall{Name: "sum", Func: coll.AllReduce, Type: coll.Float8e4m3, Count: 10}, ranks)
	if _, err := j.Bytes(); err == nil {
		t.Error("a sum of 8-bit floats is not refused")
	}
}
