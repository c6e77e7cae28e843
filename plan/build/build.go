// Package build makes plans exactly as NCCL 2.28.9 splits the work of a chosen operation (enqueue.cc,
// device/*.h).
//
// In: a connect.Layout and a plan.Request. Out: Split returns only the division over channels; Plan returns a
// plan.Plan whose programs are made op by op.
//
// Each algorithm is a file of its own and an entry of the table algorithms: the requests for which NCCL has
// no kernel, the division into chunks, and a plan.Generator. Operations made of sends and receives are in
// p2p.go. Code that generators share is in base.go and, for algorithms in which the network reduces, in
// collnet.go.
package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
)

// algorithm is the part of a plan that differs between NCCL's algorithms.
type algorithm interface {
	// supports returns an error for requests without an NCCL kernel and for those that are not modelled.
	supports(c *connect.Layout, r *plan.Request) error
	// split divides the operation over channels.
	split(c *connect.Layout, r *plan.Request) (plan.Split, error)
	// generator checks the communicator and prepares the programs.
	generator(b base) (plan.Generator, error)
}

var algorithms = [coll.NumAlgorithms]algorithm{
	coll.Tree:          treeAlgo{},
	coll.Ring:          ringAlgo{},
	coll.CollNetDirect: directAlgo{},
	coll.CollNetChain:  chainAlgo{},
	coll.NVLS:          nvlsAlgo{},
	coll.NVLSTree:      nvlsTreeAlgo{},
	coll.PAT:           patAlgo{},
}

// Plan makes the plan of request r on communicator c. Errors: *plan.RequestError, *plan.UnsupportedError.
func Plan(c *connect.Layout, r plan.Request) (*plan.Plan, error) {
	if err := validate(c, &r); err != nil {
		return nil, err
	}
	if err := r.Params.Poll(); err != nil {
		return nil, err
	}
	if err := c.CheckNets(); err != nil {
		return nil, err
	}
	b := base{comm: c, req: r}
	var g plan.Generator = noOps{}
	var err error
	switch {
	case c.NRanks == 1:
		g, err = newOneRank(b)
	case r.Func.IsP2P():
		g, err = newP2P(b)
	case r.Count > 0:
		a := algorithms[r.Algo]
		if b.split, err = a.split(c, &r); err == nil {
			g, err = a.generator(b)
		}
	}
	if err != nil {
		return nil, err
	}
	return plan.New(c, r, b.split, g)
}

// Split computes the division of r over the channels of c (enqueue.cc:519-783,
// calcCollChunking 1979-2243). Send/recv operations have none: the zero Split
// is returned for them, for one rank and for an empty operation.
func Split(c *connect.Layout, r plan.Request) (plan.Split, error) {
	if err := validate(c, &r); err != nil {
		return plan.Split{}, err
	}
	if unsplit(c, &r) {
		return plan.Split{}, nil
	}
	return algorithms[r.Algo].split(c, &r)
}

// unsplit reports whether an operation is planned without an algorithm.
func unsplit(c *connect.Layout, r *plan.Request) bool {
	return c.NRanks == 1 || r.Func.IsP2P() || r.Count == 0
}
