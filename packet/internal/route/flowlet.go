package route

// Flowlet is the frames of a flow since it was last silent, and the link by which they leave a switch.
type Flowlet struct {
	at   int64
	flow int32 // and 1
	Link int32
}

// Flowlets is how many of them a switch remembers: a power of two.
const Flowlets = 1 << 12

// Begins notes a frame of a flow that comes at a time, and says whether it is the first of another flowlet:
// after a gap, in ps as both are, or of another flow.
func (l *Flowlet) Begins(flow int32, at, gap int64) bool {
	first := l.flow != flow+1 || at-l.at >= gap
	l.flow, l.at = flow+1, at
	return first
}
