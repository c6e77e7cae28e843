package coll

import "testing"

// TestKindsDivideTheOperations: every operation is of the cost model or made
// of sends and receives, and the lists agree with the predicate.
func TestKindsDivideTheOperations(t *testing.T) {
	for _, f := range CollFuncs() {
		if f.IsP2P() || !f.Valid() {
			t.Errorf("%v: IsP2P %t, Valid %t", f, f.IsP2P(), f.Valid())
		}
	}
	for _, f := range P2PFuncs() {
		if !f.IsP2P() || !f.Valid() {
			t.Errorf("%v: IsP2P %t, Valid %t", f, f.IsP2P(), f.Valid())
		}
	}
	if n := len(CollFuncs()) + len(P2PFuncs()); n != len(Funcs()) {
		t.Errorf("%d of %d operations are of one kind", n, len(Funcs()))
	}
	for _, f := range []Func{Broadcast, Reduce, AllGather, ReduceScatter, AllReduce} {
		if f.IsP2P() {
			t.Errorf("%v is a collective of the cost model", f)
		}
	}
	if Func(NumFuncs).Valid() || Algorithm(NumAlgorithms).Valid() || Protocol(NumProtocols).Valid() ||
		DataType(NumDataTypes).Valid() || RedOp(NumRedOps).Valid() {
		t.Error("a count is no value")
	}
}

// TestAlgorithmKinds names the kinds of all seven algorithms.
func TestAlgorithmKinds(t *testing.T) {
	for a, want := range map[Algorithm]struct{ nvls, collNet, ll bool }{
		Tree: {ll: true}, Ring: {ll: true}, CollNetDirect: {collNet: true}, CollNetChain: {collNet: true},
		NVLS: {nvls: true}, NVLSTree: {nvls: true}, PAT: {},
	} {
		if a.IsNVLS() != want.nvls || a.IsCollNet() != want.collNet || a.HasLL() != want.ll {
			t.Errorf("%v: IsNVLS %t, IsCollNet %t, HasLL %t", a, a.IsNVLS(), a.IsCollNet(), a.HasLL())
		}
	}
}
