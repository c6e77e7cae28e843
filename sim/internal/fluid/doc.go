// Package fluid is the simulator's own model of links (wire.Model): a flow has
// a route and a rate of its own that it never exceeds; links are shared max-min
// fairly by progressive filling, redone only for the flows that a change can
// reach.
//
// k equal flows behave, bit for bit, like one flow of multiplicity k, which is
// what folding equal ranks and channels relies on.
package fluid
