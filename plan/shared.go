package plan

import "fmt"

// SharingGenerator is a Generator of plans that have more connections than 32 bits can number. Since equal
// nodes do the same, an id identifies a connection of the first node and those that result from it by
// rotating the nodes: with nodes of 8 ranks, rank 1 to 12 and rank 9 to 20 share an id, which Conn describes
// as the former.
type SharingGenerator interface {
	Generator
	// Sharing returns the number of connections that share an id; 1: none do.
	Sharing() int
}

// Sharing returns the number of connections that share each id; 1 if every connection has its own. A plan
// with shared ids can be folded onto its first node, but not listed, proven or run rank by rank.
func (p *Plan) Sharing() int {
	if g, ok := p.gen.(SharingGenerator); ok {
		return g.Sharing()
	}
	return 1
}

// Distinct returns an *UnsupportedError if connections share ids.
func (p *Plan) Distinct() error {
	if n := p.Sharing(); n > 1 {
		return &UnsupportedError{fmt.Sprintf("%v over %d ranks, each by itself", p.Req.Func, p.Comm.NRanks),
			fmt.Sprintf("%d connections do not fit a plan; take fewer nodes", int64(n)*int64(p.conns))}
	}
	return nil
}
