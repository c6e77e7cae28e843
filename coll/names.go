package coll

import (
	"fmt"
	"strings"
)

// words holds the spellings of one value: how NCCL prints it, how nccl-tests
// prints it, and what else a reader accepts.
type words struct {
	nccl, test string
	also       []string
}

var funcWords = [numWords]words{
	Broadcast:     {"Broadcast", "broadcast", []string{"bcast"}},
	Reduce:        {"Reduce", "reduce", nil},
	AllGather:     {"AllGather", "all_gather", nil},
	ReduceScatter: {"ReduceScatter", "reduce_scatter", nil},
	AllReduce:     {"AllReduce", "all_reduce", nil},
	SendRecv:      {"SendRecv", "sendrecv", nil},
	AllToAll:      {"AlltoAll", "alltoall", []string{AllToAllV}},
	Gather:        {"Gather", "gather", nil},
	Scatter:       {"Scatter", "scatter", nil},
	Send:          {"Send", "send", nil},
	Recv:          {"Recv", "recv", nil},
}

var algorithmWords = [NumAlgorithms]words{
	Tree:          {nccl: "Tree"},
	Ring:          {nccl: "Ring"},
	CollNetDirect: {nccl: "CollNetDirect"},
	CollNetChain:  {nccl: "CollNetChain"},
	NVLS:          {nccl: "NVLS"},
	NVLSTree:      {nccl: "NVLSTree"},
	PAT:           {nccl: "PAT"},
}

var protocolWords = [NumProtocols]words{
	LL:     {nccl: "LL"},
	LL128:  {nccl: "LL128"},
	Simple: {nccl: "Simple"},
}

var dataTypeWords = [NumDataTypes]words{
	Int8:       {"ncclInt8", "int8", []string{"char", "ncclChar", "i8"}},
	Uint8:      {"ncclUint8", "uint8", []string{"u8"}},
	Int32:      {"ncclInt32", "int32", []string{"int", "ncclInt", "i32"}},
	Uint32:     {"ncclUint32", "uint32", []string{"u32"}},
	Int64:      {"ncclInt64", "int64", []string{"i64"}},
	Uint64:     {"ncclUint64", "uint64", []string{"u64"}},
	Float16:    {"ncclFloat16", "half", []string{"float16", "fp16", "f16", "ncclHalf"}},
	Float32:    {"ncclFloat32", "float", []string{"float32", "fp32", "f32", "ncclFloat"}},
	Float64:    {"ncclFloat64", "double", []string{"float64", "fp64", "f64", "ncclDouble"}},
	BFloat16:   {"ncclBfloat16", "bfloat16", []string{"bf16"}},
	Float8e4m3: {"ncclFloat8e4m3", "f8e4m3", []string{"float8e4m3", "fp8e4m3"}},
	Float8e5m2: {"ncclFloat8e5m2", "f8e5m2", []string{"float8e5m2", "fp8e5m2"}},
}

var redOpWords = [NumRedOps]words{
	Sum:  {"Sum", "sum", []string{"ncclSum"}},
	Prod: {"Prod", "prod", []string{"ncclProd", "product"}},
	Max:  {"Max", "max", []string{"ncclMax"}},
	Min:  {"Min", "min", []string{"ncclMin"}},
	Avg:  {"Avg", "avg", []string{"ncclAvg", "average"}},
}

// String returns NCCL's word ("AllReduce", "AlltoAll"; collectives.cc:13).
func (f Func) String() string { return ncclWord(funcWords[:], int(f), "Func") }

// TestName returns nccl-tests' word without its suffix ("all_reduce",
// "alltoall"); the binary's name adds "_perf".
func (f Func) TestName() string { return testWord(funcWords[:], int(f), "Func") }

// String returns the word that NCCL_ALGO and the tuning table use ("Ring",
// "NVLSTree"; init.cc:50).
func (a Algorithm) String() string { return ncclWord(algorithmWords[:], int(a), "Algorithm") }

// LogName returns the word of NCCL's choice line, "AllReduce: 8 Bytes -> Algo
// RING" (collectives.cc:59-70).
func (a Algorithm) LogName() string {
	switch a {
	case CollNetDirect:
		return "COLLNET_DIRECT"
	case CollNetChain:
		return "COLLNET_CHAIN"
	case NVLSTree:
		return "NVLS_TREE"
	}
	return strings.ToUpper(a.String())
}

// String returns the word that NCCL_PROTO and the tuning table use
// (init.cc:51).
func (p Protocol) String() string { return ncclWord(protocolWords[:], int(p), "Protocol") }

// LogName returns the word of NCCL's choice line ("SIMPLE";
// collectives.cc:72-79).
func (p Protocol) LogName() string { return strings.ToUpper(p.String()) }

// String returns nccl.h's name ("ncclFloat32"), which NCCL's logs print.
func (t DataType) String() string { return ncclWord(dataTypeWords[:], int(t), "DataType") }

// TestName returns nccl-tests' name ("float", "half"; common.cu:46).
func (t DataType) TestName() string { return testWord(dataTypeWords[:], int(t), "DataType") }

// String returns the reduction's name as NCCL writes it ("Sum").
func (o RedOp) String() string { return ncclWord(redOpWords[:], int(o), "RedOp") }

// TestName returns nccl-tests' name ("sum"; common.cu:57).
func (o RedOp) TestName() string { return testWord(redOpWords[:], int(o), "RedOp") }

// UnknownNameError says that a word names no value of its kind.
type UnknownNameError struct {
	Kind    string   // "operation", "algorithm", "protocol", "data type" or "reduction"
	Word    string   // as written
	Nearest string   // the likeliest meant, or empty
	Known   []string // what may be written instead
}

// Error names the word, the nearest known one and all that may be written.
func (e *UnknownNameError) Error() string {
	hint := "one of " + strings.Join(e.Known, ", ")
	if e.Nearest != "" {
		hint = fmt.Sprintf("%q, or another of %s", e.Nearest, strings.Join(e.Known, ", "))
	}
	return fmt.Sprintf("unknown %s %q; write %s", e.Kind, e.Word, hint)
}

// ParseFunc reads an operation in NCCL's or nccl-tests' spelling, with or
// without "_perf", in any case and with or without "_" or "-". The error is an
// *UnknownNameError, as of every parser here.
func ParseFunc(s string) (Func, error) {
	i, err := lookup(funcWords[:NumFuncs], unsuffixed(s), "operation", s)
	return Func(i), err
}

// unsuffixed folds the name of an operation or of nccl-tests' program of it.
func unsuffixed(s string) string { return strings.TrimSuffix(fold(s), "perf") }

// ParseAlgorithm reads "Ring", "NVLSTree", "NVLS_TREE", "collnet-direct". It is
// more generous than NCCL_ALGO, whose own reader is ParseMask.
func ParseAlgorithm(s string) (Algorithm, error) {
	i, err := lookup(algorithmWords[:], fold(s), "algorithm", s)
	return Algorithm(i), err
}

// ParseProtocol reads "LL", "ll128", "SIMPLE".
func ParseProtocol(s string) (Protocol, error) {
	i, err := lookup(protocolWords[:], fold(s), "protocol", s)
	return Protocol(i), err
}

// ParseDataType reads nccl-tests' names ("half"), nccl.h's ("ncclFloat16",
// "ncclHalf") and the common short ones ("fp16", "bf16").
func ParseDataType(s string) (DataType, error) {
	i, err := lookup(dataTypeWords[:], fold(s), "data type", s)
	return DataType(i), err
}

// ParseRedOp reads "sum", "ncclSum", "avg". nccl-tests' mulsum has no fixed
// ncclRedOp_t (its factor is made at run time) and is not known here.
func ParseRedOp(s string) (RedOp, error) {
	i, err := lookup(redOpWords[:], fold(s), "reduction", s)
	return RedOp(i), err
}

// Funcs returns all operations in their order.
func Funcs() []Func { return upTo(NumFuncs) }

// Algorithms returns all algorithms in NCCL's order.
func Algorithms() []Algorithm { return upTo(NumAlgorithms) }

// Protocols returns all protocols in NCCL's order.
func Protocols() []Protocol { return upTo(NumProtocols) }

// DataTypes returns all element types in NCCL's order.
func DataTypes() []DataType { return upTo(NumDataTypes) }

// RedOps returns all reductions in NCCL's order.
func RedOps() []RedOp { return upTo(NumRedOps) }

func upTo[T ~uint8](n T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = T(i)
	}
	return all
}

func ncclWord(table []words, i int, typ string) string {
	if i >= len(table) {
		return fmt.Sprintf("%s(%d)", typ, i)
	}
	return table[i].nccl
}

func testWord(table []words, i int, typ string) string {
	if i >= len(table) {
		return fmt.Sprintf("%s(%d)", typ, i)
	}
	return table[i].test
}

var folder = strings.NewReplacer("_", "", "-", "", " ", "")

// fold brings a word to the form that spellings are compared in.
func fold(s string) string {
	return folder.Replace(strings.ToLower(s))
}

func lookup(table []words, folded, kind, asWritten string) (int, error) {
	e := &UnknownNameError{Kind: kind, Word: asWritten}
	best := 3 // a name further away than two edits is no help
	for i, w := range table {
		primary := w.nccl
		if w.test != "" {
			primary = w.test
		}
		e.Known = append(e.Known, primary)
		for _, name := range append([]string{w.nccl, w.test}, w.also...) {
			if name == "" {
				continue
			}
			d := editDistance(folded, fold(name))
			if d == 0 {
				return i, nil
			}
			if d < best && d < len(folded) {
				best, e.Nearest = d, primary
			}
		}
	}
	return 0, e
}

// editDistance is Levenshtein's, over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
