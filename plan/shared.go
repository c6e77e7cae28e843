package plan

import "fmt"

// SharingGenerator is a Generator of plans that have more connections than 32
// bits number. Equal nodes do the same, so an id names a connection of the first
// node and those that follow from it by turning the nodes: with nodes of 8
// ranks, rank 1 to 12 and rank 9 to 20 share an id, which Conn describes as the
// former.
type SharingGenerator interface {
	Generator
	// Sharing returns how many connections share an id, 1 where none do.
	Sharing() int
}

// Sharing returns how many connections share each id, 1 where every connection
// has its own. A plan with shared ids can be folded onto its first node, but
// not listed, proven or run rank by rank.
func (p *Plan) Sharing() int {
	if g, ok := p.gen.(SharingGenerator); ok {
		return g.Sharing()
	}
	return 1
}

// Distinct returns an UnsupportedError where connections share ids.
func (p *Plan) Distinct() error {
	if n := p.Sharing(); n > 1 {
		return &UnsupportedError{fmt.Sprintf("%v over %d ranks, each by itself", p.Req.Func, p.Comm.NRanks),
			fmt.Sprintf("%d connections do not fit a plan; take fewer nodes", int64(n)*int64(p.conns))}
	}
	return nil
}
