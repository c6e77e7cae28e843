package gen

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
)

// Words are what a Config has as words of people; each may be empty.
type Words struct {
	Type      string // of parameters and activations: bfloat16
	GradType  string // as Type
	Precision string // of layers' matrix products: bf16
	Schedule  string // 1f1b, interleaved with several stages a rank
	CP        string // how keys and values come: ring or all-gather
	Recompute string // auto, none, full, selective or modules of Megatron-Core
	Graphs    string
}

// word finds a word in a list; empty is the first one.
func word(option, text string, list ...string) (int, error) {
	for i, w := range list {
		if strings.EqualFold(text, w) || text == "" {
			return i, nil
		}
	}
	return 0, &Error{option, text, "write " + strings.Join(list, ", ")}
}

// Apply sets what the words say, and how many stages a rank has where nothing says it. The error is an
// *Error.
func (w *Words) Apply(c *Config) error {
	schedule := w.Schedule
	if schedule == "" && c.Virtual > 1 {
		schedule = Interleaved.String()
	}
	i, err := word("schedule", schedule, Schedules()...)
	if err != nil {
		return err
	}
	if c.Schedule = Schedule(i); c.Virtual == 0 {
		c.Virtual = 1
		if c.Schedule == Interleaved {
			c.Virtual = 2
		}
	}
	if i, err = word("cp-mode", w.CP, "ring", "all-gather"); err != nil {
		return err
	}
	c.Ring = i == 0
	m, parts := parseModules(w.Recompute)
	if w.Recompute == "selective" { // Korthikanti et al., 2022, section 5
		m, parts = CoreAttention, true
	}
	if !parts {
		if i, err = word("recompute", w.Recompute, "auto", "none", "full", "selective",
			"or some of "+strings.Join(moduleNames[:], ",")); err != nil {
			return err
		}
		c.Fit, c.Recompute = i == 0, i == 2
	}
	c.Modules = m
	if i, err = word("cuda-graphs", w.Graphs, GraphWords()...); err != nil {
		return err
	}
	c.Graphs = Graphs(i)
	if i, err = word("precision", w.Precision, workload.Precisions()...); err != nil {
		return err
	}
	c.Precision, _ = workload.ParsePrecision(workload.Precisions()[i])
	c.Type = coll.BFloat16
	if w.Type != "" {
		if c.Type, err = coll.ParseDataType(w.Type); err != nil {
			return &Error{"dtype", err.Error(), "write bfloat16, half or float"}
		}
	}
	c.GradType = c.Type
	if w.GradType != "" {
		if c.GradType, err = coll.ParseDataType(w.GradType); err != nil {
			return &Error{"grad-dtype", err.Error(), "write bfloat16, half or float"}
		}
	}
	return nil
}

// Request is a training on a machine, as a scenario says it: a model by name and how it is divided. Numbers
// that are 0 are 1; of --fsdp, none.
type Request struct {
	Model string `json:"model"`
	Seq   int64  `json:"seq,omitempty"` // 4096
	// MicroBatch and GlobalBatch are sequences.
	MicroBatch  int64 `json:"microBatch,omitempty"`
	GlobalBatch int64 `json:"globalBatch,omitempty"`
	TP          int   `json:"tp,omitempty"` // with sequence parallelism
	PP          int   `json:"pp,omitempty"`
	Virtual     int   `json:"virtual,omitempty"` // stages of a rank
	CP          int   `json:"cp,omitempty"`
	EP          int   `json:"ep,omitempty"`
	DP          int   `json:"dp,omitempty"` // 0: as many as the machine has GPUs for
	FSDP        int   `json:"fsdp,omitempty"`
	TPOverlap   bool  `json:"tpOverlap,omitempty"`
	// Words, as of Words.
	Type      string `json:"dtype,omitempty"`     // of parameters and activations: bfloat16
	GradType  string `json:"gradDtype,omitempty"` // as Type
	Precision string `json:"precision,omitempty"` // of layers' matrix products: bf16
	Schedule  string `json:"schedule,omitempty"`  // 1f1b, interleaved with several stages a rank
	CPMode    string `json:"cpMode,omitempty"`    // how keys and values come: ring or all-gather
	Recompute string `json:"recompute,omitempty"` // auto, none, full, selective or modules of Megatron-Core
	Graphs    string `json:"cudaGraphs,omitempty"`
}

// Check finds a model that is not known and words that say nothing; member is the one of the request.
func (r *Request) Check() (member string, err *Error) {
	if m, like := FindModel(r.Model); m == nil {
		if len(like) == 0 {
			like = ModelNames()
		}
		return "model", &Error{"model", fmt.Sprintf("%q is not known", r.Model),
			"write one of " + strings.Join(like, ", ")}
	}
	w := r.words()
	if errors.As(w.Apply(&Config{}), &err) {
		other := map[string]string{"cp-mode": "cpMode", "cuda-graphs": "cudaGraphs",
			"grad-dtype": "gradDtype"}
		return cmp.Or(other[err.Option], err.Option), err
	}
	return "", nil
}

func (r *Request) words() Words {
	return Words{r.Type, r.GradType, r.Precision, r.Schedule, r.CPMode, r.Recompute, r.Graphs}
}

// Config is the request for the ranks of a machine and its GPU. The error is an *Error.
func (r Request) Config(ranks int, gpu string) (Config, error) {
	if _, err := r.Check(); err != nil {
		return Config{}, err
	}
	m, _ := FindModel(r.Model)
	c := Config{Model: *m, Seq: r.Seq, MicroBatch: max(r.MicroBatch, 1), GlobalBatch: r.GlobalBatch,
		TP: max(r.TP, 1), PP: max(r.PP, 1), Virtual: r.Virtual, CP: max(r.CP, 1), EP: max(r.EP, 1), DP: r.DP,
		FSDP: r.FSDP, TPOverlap: r.TPOverlap, Capacity: 1, Prefetch: 1, Iterations: 1, Bucket: 25 << 20,
		Launch: DefaultLaunch}
	c.SequenceParallel = c.TP > 1
	c.Seq = cmp.Or(c.Seq, 4096)
	each := c.TP * c.PP * c.CP
	if c.DP == 0 {
		if c.DP = ranks / each; c.DP < 1 || ranks%each != 0 {
			return c, &Error{"tp", "tp, pp and cp do not divide the GPUs of the machine", "write other sizes"}
		}
	}
	c.GlobalBatch = cmp.Or(c.GlobalBatch, c.MicroBatch*int64(c.DP*c.PP))
	w := r.words()
	if err := w.Apply(&c); err != nil {
		return c, err
	}
	var ok bool
	if c.GPU, ok = Peak(gpu, c.Type); !ok {
		return c, &Error{"gpu", "the machine does not say which GPUs it has", "write a machine of known GPUs"}
	}
	c.Class, _ = compute.Find(gpu)
	return c, nil
}
