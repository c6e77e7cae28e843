package route

// Flowlets is the link that each flow took at a switch since it was last silent.
type Flowlets []flowlet

type flowlet struct {
	at   int64
	flow int32
	link int32
}

// NewFlowlets remembers some thousand flows; the number is a power of two.
func NewFlowlets() Flowlets { return make(Flowlets, 1<<12) }

// Link is the link that a flow took last, to be set; known is false where it has to choose anew:
// it was silent for a gap, or another flow has its place. It comes now.
func (x Flowlets) Link(flow int32, now, gap int64) (link *int32, known bool) {
	l := &x[flow&int32(len(x)-1)]
	known = l.flow == flow+1 && now-l.at < gap
	l.flow, l.at = flow+1, now
	return &l.link, known
}
