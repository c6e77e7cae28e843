// Package after says when a flow may begin that waits for the ends of others.
//
// In: which flows each waits for, and ends in ps. Out: which may begin, and when. It must not know
// what flows are.
package after

// Waits is what flows wait for.
type Waits struct {
	after   [][]int32 // flows that wait for a flow
	missing []int32   // ends that a flow waits for
	ready   []int64   // the last of them, so far
}

// New is for n flows; of gives those that one waits for.
func New(n int, of func(flow int) []int32) *Waits {
	w := &Waits{make([][]int32, n), make([]int32, n), make([]int64, n)}
	for i := range n {
		w.missing[i] = int32(len(of(i)))
		for _, d := range of(i) {
			w.after[d] = append(w.after[d], int32(i))
		}
	}
	return w
}

// Free says that a flow waits for none.
func (w *Waits) Free(flow int) bool { return w.missing[flow] == 0 }

// Ended says that a flow has ended; begin is called for each that may begin then, with the last of
// the ends that it waited for.
func (w *Waits) Ended(flow int32, at int64, begin func(flow int32, ready int64)) {
	for _, d := range w.after[flow] {
		w.ready[d] = max(w.ready[d], at)
		if w.missing[d]--; w.missing[d] == 0 {
			begin(d, w.ready[d])
		}
	}
}
