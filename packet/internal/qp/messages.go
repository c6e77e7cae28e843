package qp

// Messages is the messages of a queue pair: from head on not acknowledged, from land on
// not arrived, from begun on not begun.
type Messages struct {
	list              []message
	head, land, begun int
	end               uint32 // frames of all messages so far
	expected          uint32 // the first frame that has not come, as the receiver knows it
	came              Bitmap
}

// message begins with frame first and ends with the one before end, whose payload is last.
type message struct {
	first, end uint32
	last       int32
	token      int32
}

// Add appends a message of so many bytes in frames of payload; una is the first frame
// that is not acknowledged.
func (l *Messages) Add(bytes, payload int64, token int32, una uint32) {
	for l.head < l.land && l.list[l.head].end <= una {
		l.head++
	}
	if k := l.head; k >= 16 && 2*k >= len(l.list) {
		l.list = l.list[:copy(l.list, l.list[k:])]
		l.head, l.land, l.begun = 0, l.land-k, l.begun-k
	}
	n := (bytes + payload - 1) / payload
	l.end += uint32(n)
	l.list = append(l.list, message{l.end - uint32(n), l.end, int32(bytes - (n-1)*payload), token})
}

// Begin begins the next message and returns how many frames there are with it.
func (l *Messages) Begin() uint32 {
	l.begun++
	return l.list[l.begun-1].end
}

// Size is the bytes of a frame beside its header, and whether it is like most: its payload, most where it
// does not end a message, and what the first and the last frame of a message carry beside.
func (l *Messages) Size(psn uint32, most, first, last int) (bytes int, full bool) {
	bytes = most
	for i := l.head; i < l.begun; i++ {
		x := &l.list[i]
		if psn >= x.end {
			continue
		}
		more := 0
		if psn == x.first {
			more = max(0, first)
		}
		if psn+1 == x.end {
			bytes, more = int(x.last), more+max(0, last)
		}
		return bytes + more, bytes == most && more == 0
	}
	return bytes, true
}

// Ends reports whether a message ends with the frame before one.
func (l *Messages) Ends(psn uint32) bool {
	i := l.head
	for i < l.begun && l.list[i].end < psn {
		i++
	}
	return i < l.begun && l.list[i].end == psn
}

// Come records a frame at the receiver, which keeps those out of order if it is
// selective.
func (l *Messages) Come(psn uint32, selective bool) {
	if psn != l.expected {
		if selective && psn > l.expected {
			l.came.Set(psn, l.expected)
		}
		return
	}
	for l.expected++; l.came.Has(l.expected); l.expected++ {
		l.came.Clear(l.expected)
	}
}

// Arrived is the token of the next message that is complete, ok false without one.
func (l *Messages) Arrived() (token int32, ok bool) {
	if l.land == l.begun || l.list[l.land].end > l.expected {
		return 0, false
	}
	l.land++
	return l.list[l.land-1].token, true
}

// Waiting is how many of some lists have messages that have not arrived, and the first of them; -1: none.
func Waiting(lists []Messages) (n int, first int32) {
	first = -1
	for i := range lists {
		if l := &lists[i]; l.land < len(l.list) {
			if n++; first < 0 {
				first = int32(i)
			}
		}
	}
	return n, first
}
