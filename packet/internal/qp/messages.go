package qp

// Messages is a queue pair's list of messages. Three cursors move along it:
//
//	acknowledged | acknowledged or in flight | sending, not arrived | posted
//	             ^head                       ^land                  ^begun
type Messages struct {
	list              []message
	head, land, begun int
	end               uint32 // frames of all messages so far
	expected          uint32 // the receiver's next expected frame
	came              Bitmap
}

// message is a message's range of frames [first, end); its last frame has last bytes of payload.
type message struct {
	first, end uint32
	last       int32
	token      int32
}

// Add appends a message, cut into frames of payload bytes. It drops the entries below una, the first
// unacknowledged frame.
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

// Begin starts the next message and returns the number of frames up to its end.
func (l *Messages) Begin() uint32 {
	l.begun++
	return l.list[l.begun-1].end
}

// Size returns a frame's bytes without its header, and whether it is an ordinary full frame: the last frame
// of a message may be short, and the first and last carry extra bytes (address, immediate data).
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

// Ends reports whether frame psn is the first after the end of a message.
func (l *Messages) Ends(psn uint32) bool {
	i := l.head
	for i < l.begun && l.list[i].end < psn {
		i++
	}
	return i < l.begun && l.list[i].end == psn
}

// Come records a data frame at the receiver; a selective receiver keeps frames that arrive out of order.
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

// Arrived returns the next complete message; ok is false if there is none.
func (l *Messages) Arrived() (token int32, ok bool) {
	if l.land == l.begun || l.list[l.land].end > l.expected {
		return 0, false
	}
	l.land++
	return l.list[l.land-1].token, true
}

// Waiting returns the number of queue pairs with messages that have not arrived, and the first such queue
// pair; -1: none.
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
