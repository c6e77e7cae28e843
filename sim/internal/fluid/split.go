package fluid

import "github.com/simccl/simccl/sim/wire"

var _ wire.Parted = (*Fluid)(nil)

// Split implements wire.Parted: links and routes are shared, each is used by one part; flows
// and bundles are a part's own. Rates follow from link to link of a route, so that none of
// a part depends on another's, and within a part all comes in the order in which it would
// come without the others.
func (f *Fluid) Split(n int) []wire.Model {
	models := make([]wire.Model, n)
	for i := range models {
		p := &Fluid{Layout: f.Layout, links: f.links, routes: f.routes, keys: f.keys}
		f.parts = append(f.parts, p)
		models[i] = p
	}
	return models
}
