package coll

// IsP2P reports whether NCCL runs the operation as a group of sends and
// receives: its cost model knows no algorithm or protocol of it.
func (f Func) IsP2P() bool { return f >= NumCollFuncs }

// Valid reports whether f is one of the operations.
func (f Func) Valid() bool { return f < NumFuncs }

// Valid reports whether a is one of the algorithms.
func (a Algorithm) Valid() bool { return a < NumAlgorithms }

// IsNVLS reports whether data goes through the multicast of an NVLink switch,
// which reduces what is loaded from it and copies what is stored to it.
func (a Algorithm) IsNVLS() bool { return a == NVLS || a == NVLSTree }

// IsCollNet reports whether the network between nodes reduces. NVLS uses it
// too, but only between nodes.
func (a Algorithm) IsCollNet() bool { return a == CollNetDirect || a == CollNetChain }

// HasLL reports whether NCCL compiles LL and LL128 kernels of the algorithm;
// all others have Simple alone (device/generate.py).
func (a Algorithm) HasLL() bool { return a == Ring || a == Tree }

// Valid reports whether p is one of the protocols.
func (p Protocol) Valid() bool { return p < NumProtocols }

// Valid reports whether t is one of the element types.
func (t DataType) Valid() bool { return t < NumDataTypes }

// Valid reports whether o is one of the reductions.
func (o RedOp) Valid() bool { return o < NumRedOps }

// CollFuncs returns the operations that NCCL's cost model covers.
func CollFuncs() []Func { return Funcs()[:NumCollFuncs] }

// P2PFuncs returns the operations made of sends and receives.
func P2PFuncs() []Func { return Funcs()[NumCollFuncs:] }
