package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// Precision is the number format of a matrix product's operands.
type Precision uint8

// Precisions: BF16 represents all 16-bit formats; FP8 has one scale per tensor or block, MXFP8 one per 32
// elements (OCP Microscaling, 2023), NVFP4 an 8-bit one per 16; TF32 is the format in which 32-bit operands
// are multiplied.
const (
	BF16 Precision = iota
	FP8
	MXFP8
	NVFP4
	TF32
	numPrecisions
)

var precisionNames = [numPrecisions]string{"bf16", "fp8", "mxfp8", "nvfp4", "tf32"}

// String returns the precision's word.
func (p Precision) String() string { return precisionNames[p] }

// Precisions lists the words of --precision.
func Precisions() []string { return precisionNames[:TF32] }

// ParsePrecision returns the precision of a word, in any case; ok is false for an unknown one.
func ParsePrecision(word string) (Precision, bool) {
	for i, n := range precisionNames {
		if n == strings.ToLower(word) {
			return Precision(i), true
		}
	}
	return 0, false
}

// Wider returns the next wider precision, for a GPU that does not support this one.
func (p Precision) Wider() Precision {
	switch p {
	case NVFP4, MXFP8:
		return FP8
	}
	return BF16
}

// ShapeOp is the kind of kernel that a Shape describes.
type ShapeOp uint8

// Kinds of shapes; NoShape where bytes, or nothing, decide.
const (
	NoShape        ShapeOp = iota
	ProductShape           // Count products of M×K by K×N at once
	ForwardShape           // attention of M queries in heads of K, Count heads of all sequences
	BackwardShape          // its backward pass
	OptimizerShape         // an optimizer's step, by its bytes
	DecodeShape            // attention of M sequences' next token, each over N keys
	numShapeOps
)

var shapeNames = [numShapeOps]string{"", "product", "attention", "attention-backward", "optimizer", "decode"}

// Shape is the dimensions of a computation, which together with operations and bytes determine its time on
// another GPU.
type Shape struct {
	Op             ShapeOp
	M, N, K, Count int64
	Precision      Precision
	// Quantised: the operands are in their precision already.
	Quantised bool
	// Sums is the number of bytes moved per element of a result that is accumulated into memory, as gradients
	// of weights are; 0: the result is written in 16 bits.
	Sums int64
}

// format returns the word of a text: product:4096x6144x4096:fp8, with xCOUNT after it where that is not 1.
func (s *Shape) format() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%dx%dx%d", shapeNames[s.Op], s.M, s.N, s.K)
	if s.Count != 1 {
		fmt.Fprintf(&b, "x%d", s.Count)
	}
	if s.Precision != BF16 {
		fmt.Fprintf(&b, ":%s", s.Precision)
	}
	if s.Quantised {
		b.WriteString(":quantised")
	}
	if s.Sums != 0 {
		fmt.Fprintf(&b, ":sum%d", s.Sums)
	}
	return b.String()
}

// parseShape parses the output of format.
func parseShape(text string) (s Shape, ok bool) {
	parts := strings.Split(text, ":")
	for i, n := range shapeNames {
		if i > 0 && n == parts[0] {
			s.Op = ShapeOp(i)
		}
	}
	if s.Op == NoShape || len(parts) < 2 {
		return s, false
	}
	s.Count = 1
	to := []*int64{&s.M, &s.N, &s.K, &s.Count}
	numbers := strings.Split(parts[1], "x")
	if len(numbers) < 3 || len(numbers) > len(to) {
		return s, false
	}
	for i, n := range numbers {
		v, err := strconv.ParseInt(n, 10, 64)
		if err != nil || v < 0 || v > 1<<48 {
			return s, false
		}
		*to[i] = v
	}
	for _, p := range parts[2:] {
		if n, is := strings.CutPrefix(p, "sum"); is {
			var err error
			if s.Sums, err = strconv.ParseInt(n, 10, 64); err != nil || s.Sums < 1 || s.Sums > 64 {
				return s, false
			}
		} else if p == "quantised" {
			s.Quantised = true
		} else if s.Precision, ok = ParsePrecision(p); !ok {
			return s, false
		}
	}
	return s, true
}

// Kernel moves the data of a call in place of NCCL: of an all_reduce over the memory of peers; of an alltoall
// tokens, by their experts, or a KV cache. The zero value: NCCL does.
type Kernel struct {
	Name string // as of run --kernel, or KVKernel
	// Of experts: experts of a layer, those that a token goes to, values of a token, tokens of each rank, and
	// where the experts are in groups their number and that of a token's. Of a KV cache: the communicator's
	// last ranks, which filled it, its first ones, which get it, layers, tokens, tokens of a block, bytes of
	// a token in a layer.
	Args [6]int64
	// Combine: the direction from experts back to the tokens' ranks.
	Combine bool
}

const kernelHint = "write kernel=vllm, or kernel=deepep:EXPERTS:TOP-K:HIDDEN:TOKENS, " +
	":GROUPS:TOP-K-GROUPS after it where there are groups of experts, and :combine for the way back, " +
	"or kernel=kv:FROM:TO:LAYERS:TOKENS:BLOCK:BYTES"

// KVKernel is the name of the transfer of a request's KV cache.
const KVKernel = "kv"

// String returns the word of a text: vllm, deepep:256:8:7168:64:combine, or kv:8:4:61:4096:64:131072.
func (k Kernel) String() string {
	out := k.Name
	for _, n := range k.Args {
		if n > 0 {
			out += ":" + strconv.FormatInt(n, 10)
		}
	}
	if k.Combine {
		out += ":combine"
	}
	return out
}

// parseKernel parses the output of String.
func parseKernel(text string) (k Kernel, ok bool) {
	parts := strings.Split(text, ":")
	k.Name, parts = parts[0], parts[1:]
	if n := len(parts) - 1; n > 0 && k.Name != KVKernel && parts[n] == "combine" {
		k.Combine, parts = true, parts[:n]
	}
	known := len(parts) == 6 || k.Name != KVKernel && (len(parts) == 4 || len(parts) == 0 && !k.Combine)
	if k.Name == "" || !known {
		return k, false
	}
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil || n < 1 || n > 1<<40 {
			return k, false
		}
		k.Args[i] = n
	}
	return k, true
}

// Trained is the model of a job and the work of one iteration; the zero value: unknown.
type Trained struct {
	Name   string
	Params int64
	// Tokens is the number of tokens of an iteration over all ranks. FLOPs is the number of the model's
	// operations per token, forward and backward, without recomputation.
	Tokens int64
	FLOPs  int64
	// Phase is the phase of serving, "prefill" or "decode"; "" for training.
	Phase string
	// Micro is the number of microbatches: of the program's first and second iteration, and of an iteration
	// of the job, if those are too many to be written down; zeros if each iteration is complete.
	Micro [3]int64
}

// model parses NAME and the work of an iteration.
func (r *reader) model(w []word) error {
	const hint = "write model NAME parameters=N tokens=N flops=N"
	if len(w) < 2 || r.p.Model != (Trained{}) {
		return r.fail(w[0].col, hint, "the model has a name, and there is one")
	}
	name, err := r.name(w[1])
	if err != nil {
		return err
	}
	m := Trained{Name: name}
	for _, x := range w[2:] {
		key, value := option(x)
		if key == "phase" && (value.text == "prefill" || value.text == "decode") {
			m.Phase = value.text
			continue
		}
		if key == "microbatches" {
			if !microbatches(value.text, &m.Micro) {
				return r.fail(value.col,
					"write microbatches=16,24,128: of the first, the second and a whole "+
						"iteration", "%s are none", value.text)
			}
			continue
		}
		to := map[string]*int64{"parameters": &m.Params, "tokens": &m.Tokens, "flops": &m.FLOPs}[key]
		n, err := strconv.ParseInt(value.text, 10, 64)
		if to == nil || err != nil || n < 0 {
			return r.fail(x.col, hint, "%s is not known here", x.text)
		}
		*to = n
	}
	r.p.Model = m
	return nil
}

// microbatches reads three numbers, each larger than the one before.
func microbatches(text string, to *[3]int64) bool {
	list := strings.Split(text, ",")
	if len(list) != len(to) {
		return false
	}
	least := int64(0)
	for i, x := range list {
		n, err := strconv.ParseInt(x, 10, 64)
		if err != nil || n <= least || n > 1<<40 {
			return false
		}
		to[i], least = n, n
	}
	return true
}

func (p *Program) formatModel(b *strings.Builder) {
	if m := &p.Model; *m != (Trained{}) {
		fmt.Fprintf(b, "model %s parameters=%d tokens=%d flops=%d", quote(m.Name), m.Params, m.Tokens,
			m.FLOPs)
		if m.Phase != "" {
			b.WriteString(" phase=" + m.Phase)
		}
		if m.Micro != [3]int64{} {
			fmt.Fprintf(b, " microbatches=%d,%d,%d", m.Micro[0], m.Micro[1], m.Micro[2])
		}
		b.WriteByte('\n')
	}
}
