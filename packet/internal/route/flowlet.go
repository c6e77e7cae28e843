package route

// Flowlet is an entry of a switch's flowlet table: a flow's burst of frames and the link that it takes.
type Flowlet struct {
	at   int64
	flow int32 // flow + 1; 0: free
	Link int32
}

// Flowlets is the size of the table, a power of two; flows that collide replace each other.
const Flowlets = 1 << 12

// Begins records a frame at a time and reports whether it begins a new flowlet: after a gap (ps), or of
// another flow.
func (l *Flowlet) Begins(flow int32, at, gap int64) bool {
	first := l.flow != flow+1 || at-l.at >= gap
	l.flow, l.at = flow+1, at
	return first
}
