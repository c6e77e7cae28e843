package compute

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/jsonfile"
	"github.com/simccl/simccl/topo/machine/datasheet"
	"github.com/simccl/simccl/workload"
)

// MaxFile is the largest accepted size of a class's file, in bytes.
const MaxFile = 1 << 20

// classFiles are the classes that have a name.
//
//go:embed classes/*.json
var classFiles embed.FS

var loaded = sync.OnceValue(func() map[string]*Class {
	list, err := classFiles.ReadDir("classes")
	if err != nil {
		panic(err) // an embedded folder
	}
	out := map[string]*Class{}
	for _, f := range list {
		data, err := classFiles.ReadFile("classes/" + f.Name())
		if err != nil {
			panic(err)
		}
		c, err := decode(data, f.Name())
		if err != nil {
			panic(err) // a file of ours, which a test reads
		}
		out[c.Name] = c
	}
	return out
})

func decode(data []byte, file string) (*Class, error) {
	var c Class
	places, err := jsonfile.Strict(data, file, &c)
	if err != nil {
		return nil, err
	}
	if c.Version != 1 {
		return nil, places.Fail("simccl compute class", "write 1", "version %d", c.Version)
	}
	return &c, c.check(places)
}

// check returns an error for a value outside the bounds of its member.
func (c *Class) check(p *jsonfile.Places) error {
	for _, x := range []struct {
		path      string
		v         float64
		least, to float64
	}{
		{"uncertainty", c.Uncertainty, 0, 1}, {"sms", float64(c.SMs), 0, 4096}, {"gap_us", c.Gap, 0, 1000},
		{"kernel_us", c.Kernel, 0, 1000}, {"decode.memory", c.Decode.Memory, 0, 1},
		{"decode.start_us", c.Decode.Start, 0, 1e4},
		{"sustained", c.Sustained, 0, 1}, {"memory.peak_gbps", c.Memory.Peak, 0, 1e6},
		{"memory.stream", c.Memory.Stream, 0, 1}, {"memory.norm", c.Memory.Norm, 0, 1},
		{"memory.optimizer", c.Memory.Optimizer, 0, 1},
		{"attention_forward.peak_tflops", c.Forward.Peak, 0, 1e6},
		{"attention_forward.efficiency", c.Forward.Efficiency, 0, 1},
		{"attention_backward.peak_tflops", c.Backward.Peak, 0, 1e6},
		{"attention_backward.efficiency", c.Backward.Efficiency, 0, 1},
	} {
		if !(x.v >= x.least && x.v <= x.to) {
			return p.Fail(x.path, fmt.Sprintf("write a number from %g to %g", x.least, x.to), "%g", x.v)
		}
	}
	for name, q := range c.Products { //lint:sorted each by itself
		if !(q.Peak >= 0 && q.Peak <= 1e6 && q.Efficiency >= 0 && q.Efficiency <= 1 && q.Memory >= 0 &&
			q.Memory <= 1 && q.Depth >= 0 && q.Edge >= 0 && q.Start >= 0 && q.Cast >= 0 &&
			q.Grouped >= 0 && q.Grouped <= 1) {
			return p.Fail("products."+name, "write fractions from 0 to 1, other numbers of 0 or more",
				"a rate that no GPU has")
		}
	}
	return nil
}

// Names lists the built-in classes.
func Names() (out []string) {
	for name := range loaded() { //lint:sorted below
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Find returns the class of a GPU by its name, as drivers and users write it: its own, else the H200's
// efficiencies applied to its data sheet, which Source states. ok is false for an unknown GPU.
func Find(gpu string) (*Class, bool) {
	g, ok := datasheet.Find(gpu)
	if !ok {
		return nil, false
	}
	if c, ok := loaded()[strings.ToLower(g.Name)]; ok {
		return c.complete(&g), true
	}
	c := &Class{Version: 1, Name: strings.ToLower(g.Name), Like: "h200", Uncertainty: 0.3,
		Source: "efficiencies of the H200 over the data sheet: nothing of this GPU was measured"}
	return c.complete(&g), true
}

// Parse reads the file of a class, as calibrate compute writes it. Errors are of package fail.
func Parse(data []byte, file string) (*Class, error) {
	c, err := decode(data, file)
	if err != nil {
		return nil, err
	}
	g, ok := datasheet.Find(c.Name)
	if !ok {
		return nil, fail.At(file, 1, 1, fmt.Sprintf("no GPU is called %q", c.Name),
			"write one of "+strings.Join(datasheet.Names(), ", "))
	}
	if c.Like != "" && loaded()[c.Like] == nil {
		return nil, fail.At(file, 1, 1, fmt.Sprintf("no class is called %q", c.Like),
			"write one of "+strings.Join(Names(), ", "))
	}
	return c.complete(&g), nil
}

// complete fills in missing parameters from the class named in Like and from the data sheet.
func (c *Class) complete(g *datasheet.GPU) *Class {
	out := *c
	from := &Class{}
	if c.Like != "" && c.Like != c.Name {
		other, _ := datasheet.Find(c.Like)
		from = loaded()[c.Like].complete(&other)
	}
	fill(&out.SMs, from.SMs)
	fill(&out.Gap, from.Gap)
	fill(&out.Kernel, from.Kernel)
	fill(&out.Decode.Memory, from.Decode.Memory)
	fill(&out.Decode.Start, from.Decode.Start)
	fill(&out.Sustained, from.Sustained)
	fill(&out.Memory.Peak, g.Memory)
	fill(&out.Memory.Stream, from.Memory.Stream)
	fill(&out.Memory.Norm, from.Memory.Norm)
	fill(&out.Memory.Optimizer, from.Memory.Optimizer)
	for _, x := range []struct{ to, from *Attention }{{&out.Forward, &from.Forward},
		{&out.Backward, &from.Backward}} {
		fill(&x.to.Peak, g.Matrix)
		fill(&x.to.Efficiency, x.from.Efficiency)
		fill(&x.to.Narrow, x.from.Narrow)
		fill(&x.to.Tokens, x.from.Tokens)
		fill(&x.to.Start, x.from.Start)
	}
	out.Products = map[string]Product{}
	for name, own := range products(c, from) { //lint:sorted each by itself
		like, ok := from.Products[name]
		for _, wider := range []string{"fp8", "bf16"} { // that one has no such products
			if !ok {
				like, ok = from.Products[wider]
			}
		}
		switch name {
		case "bf16":
			fill(&own.Peak, g.Matrix)
		case "tf32":
			fill(&own.Peak, g.Single)
		}
		if own.Peak == 0 && from.Products["bf16"].Peak > 0 { // as many times 16 bits as there
			own.Peak = like.Peak * g.Matrix / from.Products["bf16"].Peak
		}
		fill(&own.Efficiency, like.Efficiency)
		fill(&own.Depth, like.Depth)
		fill(&own.Edge, like.Edge)
		fill(&own.Start, like.Start)
		fill(&own.Memory, like.Memory)
		fill(&own.Cast, like.Cast)
		fill(&own.Grouped, like.Grouped)
		out.Products[name] = own
	}
	return &out
}

// products returns the product parameters of a class; if it has none, those of the class named in Like for
// bf16 and tf32.
func products(c, from *Class) map[string]Product {
	if len(c.Products) > 0 {
		return c.Products
	}
	out := map[string]Product{}
	for name := range from.Products { //lint:sorted each by itself
		if name == "bf16" || name == "tf32" {
			out[name] = Product{}
		}
	}
	return out
}

func fill[T int64 | float64](to *T, from T) {
	*to = cmp.Or(*to, from)
}

// Format returns the file of a class.
func (c *Class) Format() ([]byte, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	return append(data, '\n'), err
}

// Peak returns the dense peak of a GPU in operations per second, in a precision or the next wider one that
// the GPU supports; 0 for an unknown GPU.
func Peak(gpu string, precision workload.Precision) (float64, workload.Precision) {
	c, ok := Find(gpu)
	if !ok {
		return 0, precision
	}
	for !c.Has(precision) && precision != workload.BF16 {
		precision = precision.Wider()
	}
	return c.Products[precision.String()].Peak * 1e12, precision
}
