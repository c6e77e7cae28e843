// Package fluid is the simulator's own model of links (wire.Model): a flow has
// a route and a rate of its own that it never exceeds; links are shared max-min
// fairly. The rates are those of progressive filling, and follow a change from
// link to link (docs/adr/0019).
//
// k equal flows behave, bit for bit, like one flow of multiplicity k, which is
// what folding equal ranks and channels relies on.
package fluid
