package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/tuning"
)

// Preset is what RCCL knows of a machine before any search.
type Preset struct {
	Model   string `json:"model,omitempty"`   // in RCCL's source: "rome_model_81"; empty where none fits
	Place   int    `json:"place"`             // in RCCL's list, -1 for none
	Matcher string `json:"matcher,omitempty"` // the function that found it
	Source  string `json:"source"`            // of the model, or of the matchers
	// GPUs (devices) and NICs (places) of the machine, in the model's order
	GPUs []int  `json:"gpus,omitempty"`
	NICs []int  `json:"nics,omitempty"`
	Note string `json:"note,omitempty"` // why no model was looked for
	// Rivals are the models of as many GPUs that it is not; Others have other numbers of GPUs.
	Rivals []preset.Rival `json:"rivals,omitempty"`
	Others int            `json:"others"`
}

// presetOf is that of rank 0's machine; nil of a library without models.
func presetOf(c *comm.Comm) *Preset {
	r, known := c.Params.Rules, c.Preset
	if r.Search.Presets == 0 || known == nil {
		return nil
	}
	p := &Preset{Model: known.Name, Place: known.Model, Matcher: known.Matcher, GPUs: known.GPUs,
		NICs: known.NICs, Source: r.Cite(rules.AtPreset)}
	if known.Line > 0 {
		p.Model = "rome_model_" + known.Name
		p.Source = fmt.Sprintf("graph/rome_models.cc:%d of %s", known.Line, r.Name())
	}
	if p.Model == preset.Chordal {
		p.Model = "the chordal ring of eight"
	}
	if p.Rivals, p.Others = known.Rivals(); p.Model == "" && len(p.Rivals)+p.Others == 0 {
		p.Note = "no model is looked for: hosts have different numbers of ranks"
		if c.Params.Preset.Off {
			p.Note = "no model is looked for: RCCL_MODEL_MATCHING_DISABLE=1"
		}
	}
	return p
}

// presetText says which model the machine is of, and why not of others.
func (r *Report) presetText(b *strings.Builder) {
	p := r.Preset
	switch {
	case p == nil:
		return
	case p.Model == "":
		note := cmp.Or(p.Note, "RCCL has no model of it, and searches")
		fmt.Fprintf(b, "\nMachine: %s\n", cited(note, p.Source))
	default:
		fmt.Fprintf(b, "\nMachine: RCCL takes rings and trees of %s, found by %s\n", cited(p.Model, p.Source),
			p.Matcher)
	}
	for i, list := range [][]int{p.GPUs, p.NICs} {
		if len(list) > 0 {
			fmt.Fprintf(b, "  %s in the model's order: %s\n", [...]string{"GPUs", "NICs"}[i],
				strings.Trim(fmt.Sprint(list), "[]"))
		}
	}
	rows, at := [][]string{{"why not", "models, with their lines"}}, map[string]int{}
	for _, v := range p.Rivals {
		name := fmt.Sprintf("%s (%d)", v.Name, v.Line)
		if i, ok := at[v.Why]; ok {
			rows[i][1] += ", " + name
			continue
		}
		at[v.Why] = len(rows)
		rows = append(rows, []string{v.Why, name})
	}
	if len(rows) > 1 {
		table(b, rows, "ll")
	}
	if p.Others > 0 {
		fmt.Fprintf(b, "  and %s of other numbers of GPUs\n", plural(p.Others, "model"))
	}
}

// rccl fills in what RCCL does beside its cost model.
func (r *Report) rccl(c *comm.Comm, ch tuning.Choice) {
	cite := func(rule string, at rules.Place) tuning.Reason {
		return tuning.Reason{Rule: rule, At: at, Source: c.Params.Rules.Cite(at)}
	}
	if ch.Overruled != nil {
		for _, o := range *ch.Overruled {
			o.Source = c.Params.Rules.Cite(o.At)
			r.Overruled = append(r.Overruled, o)
		}
	}
	if ch.DDA || c.Model.TakenByDDA(ch.Op) {
		r.Instead = append(r.Instead,
			cite("kernels that read the memory of all eight GPUs do it (DDA), unless it is in a "+
				"group or GPUs cannot map each other's memory", rules.AtDDA))
	}
	switch ch.Direct {
	case tuning.DirectGather:
		r.Instead = append(r.Instead, cite(fmt.Sprintf("each rank sends to all %d (AllGatherDirect)",
			c.NRanks),
			rules.AtDirect))
	case tuning.DirectScatter:
		r.Instead = append(r.Instead, cite(fmt.Sprintf("each rank sends to all %d and reduces what it got "+
			"(ReduceScatterDirect)", c.NRanks), rules.AtDirectRS))
	case tuning.Hierarchical:
		r.Instead = append(r.Instead,
			cite("it gathers over nodes and then within them (Hierarchical), unless it is in "+
				"a group", rules.AtHierarchy))
	}
}
