package gen

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	clock "github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/transform"
)

// small is a model that all divisions of up to 4 fit.
func small() Config {
	gpu, _ := Peak("h200", coll.BFloat16)
	return Config{Model: Model{Layers: 8, Hidden: 64, Heads: 8, KVHeads: 4, FFN: 256, Vocab: 128,
		TopK: 1},
		Seq: 32, MicroBatch: 2,
		GlobalBatch: 8, Type: coll.BFloat16, GradType: coll.BFloat16,
		TP: 1, PP: 1, Virtual: 1, DP: 1, Bucket: 25 << 20, Prefetch: 1, EP: 1, Capacity: 1, CP: 1,
		Iterations: 1, GPU: gpu}
}

func makeJob(t testing.TB, c Config) *Job {
	t.Helper()
	j, err := Make(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Program().Lint(); err != nil {
		t.Fatal(err)
	}
	return j
}

func elapsed(t testing.TB, j *Job) units.Time {
	t.Helper()
	r, err := clock.Run(t.Context(), clock.Apart(j.Program(), nil, 32<<20))
	if err != nil {
		t.Fatal(err)
	}
	return r.Elapsed()
}

// sum is the bytes that a rank has in calls of a kind whose purpose contains a word.
func sum(j *Job, kind, op, word string) (bytes, sent int64) {
	for _, x := range j.Traffic {
		if x.Kind == kind && (op == "" || x.Op == op) && strings.Contains(x.What, word) {
			bytes, sent = bytes+x.BytesPerRank, sent+x.SentPerRank
		}
	}
	return bytes, sent
}

// uniform gives passes times: forward 3·unit a layer, backward of inputs as much and of
// weights as much; embedding, head and optimizer nothing.
func uniform(forward, input, weight units.Time) map[string]units.Time {
	t := map[string]units.Time{"optimizer": 0, "embedding": 0, "head": 0, "head_backward_input": 0,
		"head_backward_weight": 0, "embedding_backward_weight": 0,
		"attention": 0, "attention_backward": 0}
	for _, n := range []string{"qkv", "proj", "up", "down"} {
		t[n], t[n+"_backward_input"], t[n+"_backward_weight"] = forward, input, weight
	}
	return t
}

// TestBubble: with communication that takes no time a pipeline of p stages and m
// microbatches idles (p-1)/(m+p-1) of its time with GPipe and 1F1B, and (p-1)/v of m
// with v stages a rank (Narayanan et al., 2021, section 2.2).
func TestBubble(t *testing.T) {
	const layer = 4 * 1000 * 3 // picoseconds forward and backward of a layer's products
	for _, p := range []int{2, 4, 8} {
		for _, m := range []int64{1, 3, 4, 8, 16} {
			for _, s := range []Schedule{GPipe, OneFOneB} {
				c := small()
				c.PP, c.Schedule, c.GlobalBatch, c.Times = p, s, 2*m, uniform(1000, 1000, 1000)
				stage := units.Time(layer * 8 / p)
				if got, want := elapsed(t, makeJob(t, c)), stage*units.Time(int(m)+p-1); got != want {
					t.Errorf("%v p %d m %d: %v, want %v", s, p, m, got, want)
				}
			}
			if m%int64(p) != 0 || p == 8 {
				continue
			}
			c := small()
			c.PP, c.Schedule, c.Virtual, c.GlobalBatch, c.Times = p, Interleaved, 2, 2*m,
				uniform(1000, 1000, 1000)
			half := units.Time(layer * 8 / p / 2)
			if got, want := elapsed(t, makeJob(t, c)), half*units.Time(2*int(m)+p-1); got != want {
				t.Errorf("interleaved p %d m %d: %v, want %v", p, m, got, want)
			}
		}
	}
}

// TestZeroBubble: with passes of equal times ZB-H1 idles a third of what 1F1B does,
// (p-1)(F+B-W) (Qi et al., 2023, table 1), and holds no more activations.
func TestZeroBubble(t *testing.T) {
	for _, p := range []int{2, 4, 8} {
		c := small()
		c.PP, c.Schedule, c.GlobalBatch, c.Times = p, ZeroBubble, int64(2*3*p), uniform(1000, 1000, 1000)
		pass := units.Time(4 * 1000 * 8 / p)
		if got, want := elapsed(t, makeJob(t, c)), pass*units.Time(3*3*p+p-1); got != want {
			t.Errorf("p %d: %v, want %v", p, got, want)
		}
		for r := range p {
			held, most := 0, 0
			for _, a := range actions(ZeroBubble, p, r, 3*p, 1) {
				switch a.kind {
				case forward:
					held++
				case weights:
					held--
				}
				most = max(most, held)
			}
			if most > p || held != 0 {
				t.Errorf("p %d rank %d holds %d activations, %d in the end", p, r, most, held)
			}
		}
	}
}

// TestTensorBytes: two all_reduces of b·s·h forward and two backward a layer (Shoeybi et
// al., 2019); with sequence parallelism as many bytes in all_gather and reduce_scatter,
// and two all_gathers more backward (Korthikanti et al., 2022).
func TestTensorBytes(t *testing.T) {
	c := small()
	c.TP = 4
	const tensorBytes, layers, micro = 2 * 32 * 64 * 2, 8, 4
	j := makeJob(t, c)
	for _, what := range []string{"attention", "feed-forward"} {
		if got, _ := sum(j, "tp", "all_reduce", what); got != 2*layers*micro*tensorBytes {
			t.Errorf("%s: %d bytes, want %d", what, got, 2*layers*micro*tensorBytes)
		}
	}
	c.Recompute = true
	if got, _ := sum(makeJob(t, c), "tp", "all_reduce", "attention"); got != 3*layers*micro*tensorBytes {
		t.Errorf("with recomputation: %d bytes, want %d", got, 3*layers*micro*tensorBytes)
	}
	c.SequenceParallel, c.Recompute = true, false
	j = makeJob(t, c)
	for _, what := range []string{"attention", "feed-forward"} {
		for _, op := range []string{"all_gather", "reduce_scatter"} {
			if got, sent := sum(j, "tp", op, what); got != 2*layers*micro*tensorBytes || sent != got/4*3 {
				t.Errorf("%s %s: %d bytes of which %d are sent, want %d", op, what, got, sent,
					2*layers*micro*tensorBytes)
			}
		}
	}
	if got, _ := sum(j, "tp", "all_gather", "again"); got != (2*layers+1)*micro*tensorBytes {
		t.Errorf("inputs again: %d bytes, want %d", got, (2*layers+1)*micro*tensorBytes)
	}
}

// TestSelective: attention is computed once more a layer and microbatch, and nothing else
// changes: the calls, their bytes, the other computations.
func TestSelective(t *testing.T) {
	for _, cp := range []int{1, 2} {
		for _, s := range []Schedule{OneFOneB, ZeroBubble} {
			c := small()
			c.TP, c.CP, c.PP, c.Ring, c.Schedule = 2, cp, 2, true, s
			count := func(c Config) (attention, others, calls int) {
				for _, l := range makeJob(t, c).Program().Lists {
					for i := range l.Steps {
						switch s := &l.Steps[i]; {
						case s.Kind == workload.Issue:
							calls++
						case s.Kind == workload.Compute:
							others++
						}
					}
				}
				for _, o := range makeJob(t, c).Operations {
					if o.Name == "attention" || o.Name == "attention_part" { // as in the forward pass
						attention++
					}
				}
				return attention, others, calls
			}
			_, plain, calls := count(c)
			c.Modules = CoreAttention
			ops, again, same := count(c)
			ranks := 2 * cp * 2
			layers, micro := int(c.Layers)/2, int(c.GlobalBatch/c.MicroBatch)
			if ops != 1 || same != calls || again-plain != ranks*layers*micro*cp {
				t.Errorf("cp %d, %s: %d operations more, %d and %d calls", cp, s, again-plain, calls, same)
			}
		}
	}
	c := small()
	c.Recompute, c.Modules = true, CoreAttention
	if _, err := Make(c); err == nil || !strings.Contains(err.Error(), "--recompute") {
		t.Error(err)
	}
}

// params are those of small by hand: norms, attention, feed-forward network, embedding,
// head and last norm.
const params = 8*(2*64+64*(64+2*4*8)+64*64+2*64*256) + 2*128*64 + 64

// TestDataBytes: all_reduce moves 2(N-1)/N of the parameters, ZeRO 1 and 2 as much,
// ZeRO 3 three times (N-1)/N (Rajbhandari et al., 2020, section 7), up to padding.
func TestDataBytes(t *testing.T) {
	for stage, want := range []float64{2, 2, 2, 3} {
		c := small()
		c.DP, c.FSDP = 4, stage
		j := makeJob(t, c)
		if j.Params != params {
			t.Fatalf("%d parameters, want %d", j.Params, params)
		}
		_, sent := sum(j, "dp", "", "")
		if exact := want * params * 2 * 3 / 4; float64(sent) < exact || float64(sent) > exact+10*3*3*2 {
			t.Errorf("ZeRO %d sends %d bytes, want %.0f", stage, sent, exact)
		}
	}
}

// TestTied: one matrix of the vocabulary less; between first and last stage its gradients,
// each rank with its own part.
func TestTied(t *testing.T) {
	c := small()
	c.Tied = true
	if j := makeJob(t, c); j.Params != params-128*64 {
		t.Errorf("%d parameters, want %d", j.Params, params-128*64)
	}
	c.DP = 2
	if _, sent := sum(makeJob(t, c), "dp", "", ""); sent != (params-128*64)*2 {
		t.Errorf("%d bytes of gradients, want %d", sent, (params-128*64)*2)
	}
	c.TP, c.PP, c.Schedule = 2, 4, GPipe
	j := makeJob(t, c)
	for _, x := range j.Traffic {
		if x.Kind == "embedding" && (x.Op != "all_reduce" || x.Bytes != 128*64/2*2 || x.Ranks != 2 ||
			x.Groups != 4 || x.CallsMin != 0 || x.CallsMax != 1) {
			t.Errorf("%+v", x)
		}
	}
	if got, _ := sum(j, "embedding", "all_reduce", ""); got != 128*64 {
		t.Errorf("%d bytes between first and last stage, want %d", got, 128*64)
	}
}

// TestMessages: stages exchange b·s·h once a microbatch in each direction, v times more
// where a rank has v of them; a ring of keys passes its part n-1 times forward and, with
// their gradients, 2n-1 times backward; experts exchange each token's k copies twice
// forward and twice backward.
func TestMessages(t *testing.T) {
	c := small()
	c.PP = 4
	for _, kind := range []string{"pp-forward", "pp-backward"} {
		if got, _ := sum(makeJob(t, c), kind, "send", ""); got != 4*2*32*64*2 {
			t.Errorf("%s: %d bytes", kind, got)
		}
	}
	c.Schedule, c.Virtual = Interleaved, 2
	if got, _ := sum(makeJob(t, c), "pp-forward", "send", ""); got != 2*4*2*32*64*2 {
		t.Errorf("interleaved: %d bytes", got)
	}
	c = small()
	c.CP = 4
	const part = 2 * 8 * 2 * 4 * 8 * 2 // b, s/n, K and V, heads, size of a head, bytes
	if got, _ := sum(makeJob(t, c), "cp", "all_gather", ""); got != 2*8*4*4*part {
		t.Errorf("gathered keys: %d bytes, want %d", got, 2*8*4*4*part)
	}
	c.Ring = true
	if got, _ := sum(makeJob(t, c), "cp", "send", ""); got != 8*4*(3+7)*part {
		t.Errorf("ring: %d bytes, want %d", got, 8*4*(3+7)*part)
	}
	c = small()
	c.DP, c.EP, c.Experts, c.TopK = 4, 4, 8, 2
	if got, _ := sum(makeJob(t, c), "ep", "alltoall", ""); got != 8*4*1*2*(2*32)*64*2 {
		t.Errorf("experts: %d bytes, want %d", got, 8*4*1*2*(2*32)*64*2)
	}
}

// TestOverlap: buckets are reduced beside the backward pass, or else after it.
func TestOverlap(t *testing.T) {
	at := func(none bool) int {
		c := small()
		c.DP, c.Bucket, c.NoOverlap = 2, 64<<10, none
		j := makeJob(t, c)
		for i, s := range j.Program().Lists[0].Steps {
			if s.Kind == workload.Issue {
				return i
			}
		}
		return -1
	}
	if a, b := at(false), at(true); a < 0 || a >= b {
		t.Errorf("the first bucket is step %d, without overlap %d", a, b)
	}
	// Prefetch hides the gather of the next layer behind this one.
	exposed := func(n int) units.Time {
		c := small()
		c.DP, c.FSDP, c.Prefetch = 2, 3, n
		p := makeJob(t, c).Program()
		r, err := clock.Run(t.Context(), clock.Apart(p, func(*workload.Call) units.Time {
			return units.Microsecond
		}, 0))
		if err != nil {
			t.Fatal(err)
		}
		return r.Elapsed()
	}
	if a, b := exposed(0), exposed(1); b >= a {
		t.Errorf("with prefetch %v, without %v", b, a)
	}
}

// TestErrors: what cannot be divided says what to write.
func TestErrors(t *testing.T) {
	for _, x := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.TP = 3 }, "--tp: 8 heads cannot be divided by 3; write --tp 2"},
		{func(c *Config) { c.Hidden, c.Heads, c.KVHeads, c.TP = 96, 12, 6, 4 },
			"--tp: 6 heads of keys and values cannot be divided by 4; write --tp 3"},
		{func(c *Config) { c.PP = 11 }, "--pp: 8 layers cannot be divided into 11 stages; write --pp 8"},
		{func(c *Config) { c.GlobalBatch = 7 }, "--global-batch: 7 sequences are not a multiple of " +
			"micro-batch times dp, 2; write --global-batch 8"},
		{func(c *Config) { c.DP, c.EP, c.Experts = 4, 3, 6 }, "--ep: 4 ranks of a stage (tp·cp·dp) are " +
			"not a multiple of 3: experts are divided among them; write --ep 2"},
		{func(c *Config) { c.DP, c.EP = 4, 4 },
			"--ep: there are no experts to divide; add --experts 8 --top-k 2"},
		{func(c *Config) { c.Schedule = Interleaved }, "--schedule: interleaved needs several stages on " +
			"each of several ranks; add --virtual 2 and --pp 2 or more"},
		{func(c *Config) { c.Layers = 0 }, "--layers: 0; write a number from 1 to 16384"},
		{func(c *Config) { c.DP, c.GlobalBatch, c.Layers = 32768, 1<<20, 4096 }, ""},
		{func(c *Config) { c.GlobalBatch, c.MicroBatch, c.Iterations = 1<<24, 1, 1000 }, ""},
		{func(c *Config) { c.Seq, c.MicroBatch, c.GlobalBatch = 1<<26, 1<<20, 1<<20 }, ""},
		{func(c *Config) { c.Hidden, c.Layers, c.FFN, c.Vocab = 1<<20, 1<<14, 1<<24, 1<<26 }, ""},
		{func(c *Config) { c.TP, c.PP, c.CP, c.DP = 4, 8, 4, 1<<16; c.GlobalBatch = 1 << 17 }, ""},
	} {
		c := small()
		x.change(&c)
		_, err := Make(c)
		var e *Error
		if !errors.As(err, &e) || x.want != "" && err.Error() != x.want {
			t.Errorf("%v, want %q", err, x.want)
		}
	}
}

// TestAny: whatever can be divided lints clean, does not deadlock, has ranks that
// compute equally within a stage, is the same each time, and survives its text form.
func TestAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(name string, of ...int) int { return rapid.SampledFrom(of).Draw(t, name) }
		c := small()
		c.TP, c.PP, c.DP, c.CP = pick("tp", 1, 2, 4), pick("pp", 1, 2, 4), pick("dp", 1, 2, 4),
			pick("cp", 1, 2)
		c.SequenceParallel = c.TP > 1 && rapid.Bool().Draw(t, "sp")
		c.Schedule = Schedule(pick("schedule", 0, 1, 2, 3))
		if c.Schedule == Interleaved {
			c.Virtual = 2
		}
		c.FSDP, c.Prefetch = pick("fsdp", 0, 1, 2, 3), pick("prefetch", 0, 1, 3)
		c.Experts, c.TopK, c.EP = pick("experts", 0, 4), 2, pick("ep", 1, 2)
		c.Recompute = rapid.Bool().Draw(t, "recompute")
		c.Tied = rapid.Bool().Draw(t, "tied")
		if !c.Recompute {
			c.Modules = Modules(rapid.IntRange(0, 1<<len(moduleNames)-1).Draw(t, "modules"))
		}
		c.Ring, c.NoOverlap, c.Gated = rapid.Bool().Draw(t, "ring"), rapid.Bool().Draw(t, "late"),
			rapid.Bool().Draw(t, "gated")
		c.Bucket = units.Bytes(pick("bucket", 1, 10<<10, 25<<20))
		c.GlobalBatch = int64(c.DP) * 2 * int64(pick("m", 1, 2, 4, 8))
		c.Iterations = pick("iterations", 1, 2)
		j, err := Make(c)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Hint == "" {
				t.Fatal(err)
			}
			return
		}
		if err := j.Program().Lint(); err != nil {
			t.Fatal(err)
		}
		if _, err := clock.Run(t.Context(), clock.Apart(j.Program(), nil, 32<<20)); err != nil {
			t.Fatal(err)
		}
		equal(t, &c, j)
		text := j.Program().Format()
		if again, err := Make(c); err != nil || again.Program().Format() != text {
			t.Fatalf("differs: %v", err)
		}
		if p, err := workload.Parse(j.Folded.Format(), "t"); err != nil || p.Format() != text ||
			issuedBy(p) != issuedBy(j.Program()) || j.Folded.Format() != text {
			t.Fatalf("its text is another job: %v\n%s", err, text)
		}
	})
}

// equal checks that ranks of a stage compute equally.
func equal(t *rapid.T, c *Config, j *Job) {
	perStage := c.TP * c.CP * c.DP
	totals := make([]units.Time, j.Program().Ranks())
	for r := range totals {
		for _, s := range j.Program().Lists[j.Program().Of[r]].Steps {
			if s.Kind == workload.Compute {
				totals[r] += s.Time
			}
		}
		if first := r / perStage * perStage; totals[r] != totals[first] {
			t.Fatalf("rank %d computes %v, rank %d %v", r, totals[r], first, totals[first])
		}
	}
}

// TestScale: a job of two data parallel ranks that is made larger by replicas issues
// what a job of four issues.
func TestScale(t *testing.T) {
	for _, stage := range []int{0, 2, 3} {
		c := small()
		c.TP, c.DP, c.FSDP, c.GlobalBatch = 2, 2, stage, 8
		large, err := transform.DataParallel(makeJob(t, c).Program(), 4)
		if err != nil {
			t.Fatal(err)
		}
		c.DP, c.GlobalBatch = 4, 16
		if got, want := issued(large), issued(makeJob(t, c).Program()); got != want {
			t.Errorf("ZeRO %d: scaled\n%s\nmade\n%s", stage, got, want)
		}
	}
}

// issuedBy are the calls of all ranks.
func issuedBy(p *workload.Program) string {
	var b strings.Builder
	for r, at := range p.Of {
		for i := range p.Lists[at].Steps {
			if s := &p.Lists[at].Steps[i]; s.Kind == workload.Issue {
				c := &p.Calls[s.Call]
				fmt.Fprintln(&b, r, i, p.Comms[c.Comm].Name, c.Func, c.Count, c.Peer, s.Deps)
			}
		}
	}
	return b.String()
}

// issued are the calls of the first rank.
func issued(p *workload.Program) string {
	var b strings.Builder
	for _, s := range p.Lists[p.Of[0]].Steps {
		if s.Kind == workload.Issue {
			c := &p.Calls[s.Call]
			fmt.Fprintln(&b, p.Comms[c.Comm].Kind, p.Comms[c.Comm].Size(p.Ranks()), c.Func.TestName(),
				c.Count)
		}
	}
	return b.String()
}

// TestRoofline: a large product takes its operations over what the GPU reaches, a small
// one its bytes; a file's times go first.
func TestRoofline(t *testing.T) {
	c := small()
	c.Hidden, c.FFN, c.Seq, c.MicroBatch = 8192, 32768, 4096, 2
	c.Times = map[string]units.Time{"down": 5 * units.Microsecond}
	j := makeJob(t, c)
	seen := fmt.Sprint(j.FromRoofline)
	for _, o := range j.Operations {
		switch o.Name {
		case "proj":
			want := 2*8192.0*8192*8192/(989.4e12*0.6)*1e6 + 2
			if math.Abs(o.Us/want-1) > 1e-6 || o.Source != fromRoofline {
				t.Errorf("%+v, want %.3f us", o, want)
			}
		case "down":
			if o.Us != 5 || o.Source != fromFile || strings.Contains(seen, "down ") {
				t.Errorf("%+v; from the roofline: %s", o, seen)
			}
		case "embedding":
			want := 2*8192.0*8192*2/(4800e9*0.8)*1e6 + 2
			if math.Abs(o.Us/want-1) > 1e-6 {
				t.Errorf("%+v, want %.3f us", o, want)
			}
		}
	}
}

// TestLossOfDividedVocabulary: three all_reduces of a number a token for each microbatch: the largest, the
// sum and the wanted logit (Shoeybi et al., 2019, section 3). A rank that has the whole vocabulary issues
// none.
func TestLossOfDividedVocabulary(t *testing.T) {
	const tokens, micro = 2 * 32, 4
	for tp, want := range map[int]int64{1: 0, 2: 3 * micro * tokens * 4, 4: 3 * micro * tokens * 4} {
		c := small()
		c.TP = tp
		if got, _ := sum(makeJob(t, c), "tp", "all_reduce", "loss"); got != want {
			t.Errorf("divided by %d: %d bytes, want %d", tp, got, want)
		}
	}
}

// TestHybridSharding: gradients are scattered and parameters gathered among neighbours, and each part is
// summed up with those of other groups; each rank holds an N-th of the neighbours' N. A group of all is FSDP.
func TestHybridSharding(t *testing.T) {
	for _, stage := range []int{1, 2, 3} {
		c := small()
		c.DP, c.FSDP, c.Prefetch, c.GlobalBatch = 8, stage, 1, 16
		whole := makeJob(t, c)
		c.Shard = 8
		if same := makeJob(t, c); same.Folded.Format() != whole.Folded.Format() {
			t.Errorf("ZeRO %d: a group of all ranks differs", stage)
		}
		c.Shard = 4
		j := makeJob(t, c)
		p := j.Program()
		for _, comm := range p.Comms {
			switch {
			case comm.Name == "dp1" && !slices.Equal(comm.Ranks, []int32{4, 5, 6, 7}),
				comm.Name == "replicas1" && !slices.Equal(comm.Ranks, []int32{1, 5}):
				t.Errorf("%s: %v", comm.Name, comm.Ranks)
			}
		}
		scattered, _ := sum(j, "dp", "reduce_scatter", "gradients")
		summed, _ := sum(j, "replicas", "all_reduce", "gradients")
		if scattered == 0 || summed != scattered/4 {
			t.Errorf("ZeRO %d: %d bytes summed up of %d scattered among 4", stage, summed, scattered)
		}
		a, b := whole.Folded.Memory.Optimizer, j.Folded.Memory.Optimizer
		if math.Abs(float64(b)/float64(a)-2) > 0.01 {
			t.Errorf("ZeRO %d: %v of the optimizer's state, %v among twice as many", stage, b, a)
		}
	}
	c := small()
	c.DP, c.Shard = 8, 4
	if _, err := Make(c); err == nil || !strings.Contains(err.Error(), "--shard") {
		t.Error(err)
	}
}

// TestMessagesBesidePasses: the receive of an interleaved pass is launched before the pass that precedes it,
// without overlap and with other schedules behind that pass; the calls are the same.
func TestMessagesBesidePasses(t *testing.T) {
	passes := func(c Config) (most, calls int) { // computations from a receive to what waits for it
		p := makeJob(t, c).Program()

		for _, l := range p.Lists {
			between := map[int32]int{}
			for i, s := range l.Steps {
				if s.Kind == workload.Issue {
					if calls++; p.Calls[s.Call].Func == coll.Recv {
						between[int32(i)] = 0
					}
					continue
				}
				for r, n := range between {
					if slices.Contains(s.Deps, r) {
						most = max(most, n)
						delete(between, r)
					} else {
						between[r] = n + 1
					}
				}
			}
		}
		return most, calls
	}
	c := named(t, "llama-3.1-8b")
	c.PP, c.Layers, c.GlobalBatch, c.Schedule, c.Virtual = 2, 8, 8, Interleaved, 2
	beside, calls := passes(c)
	c.NoP2POverlap = true
	after, same := passes(c)
	if beside == 0 || after != 0 || calls != same {
		t.Errorf("%d computations beside a receive, %d without overlap; %d and %d calls", beside, after,
			calls, same)
	}
	c.Schedule, c.Virtual, c.NoP2POverlap = OneFOneB, 1, false
	if after, _ := passes(c); after != 0 {
		t.Errorf("1F1B: %d computations beside a receive", after)
	}
}
