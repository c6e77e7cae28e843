package whole

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/topo/lint"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
)

// FuzzTopology makes topologies by their structure, so that nearly every input
// gets past the parser, and takes them through all pure stages: text, Spec, lint,
// System, cluster, communicator, small plans and their proofs. An error is fine
// where it is the input's; a panic, an untyped error of Build or a plan that its
// proof refuses is not.
func FuzzTopology(f *testing.F) {
	f.Add([]byte{2, 1, 1, 2, 3, 4, 5, 6, 7, 8}, uint8(2))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, uint8(1))
	f.Add([]byte{1, 2, 0, 1, 1, 3, 0, 1, 0, 1}, uint8(0)) // a GPU outside any <cpu>
	// Two GPUs with NVLinks to each other and a NIC below one switch.
	f.Add([]byte{0, 1, 0, 1, 0, 1, 0, 0, 1, 2, 1, 16, 1, 0, 1, 16, 1, 3, 0, 1, 1, 1, 5, 1, 3, 2, 0, 9, 9, 9,
		1, 0, 1, 16, 3, 0, 1, 1, 1, 5, 1, 2, 2, 0}, uint8(2))
	f.Fuzz(func(t *testing.T, script []byte, nodes uint8) {
		g := generator{script: script[:min(len(script), 400)]}
		text := g.topology()
		spec, err := topoxml.Parse([]byte(text), "fuzz")
		if err != nil {
			return
		}
		defer func() {
			if r := recover(); r != nil {
				t.Fatalf("%v in\n%s", r, text)
			}
		}()
		p, cp := g.params()
		_ = lint.Check(spec, p)
		again, err := topoxml.Parse(topoxml.Write(spec.Root), "again")
		if err != nil || len(again.Root.Children) != len(spec.Root.Children) {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
		cl, err := fabric.NewUniform(spec, 1+int(nodes)%3, p)
		if err != nil {
			typed(t, err, text)
			return
		}
		c, err := comm.New(cl, cp)
		if err != nil || c.NRanks > 24 {
			return
		}
		plans(t, &g, c, text)
	})
}

// typed refuses errors of which cmd would not know whose fault they are.
func typed(t *testing.T, err error, text string) {
	var e *topo.Error
	var many *topo.TooManyGPUsError
	var split *topo.SplitHostsError
	var merge *topo.MergeError
	if !errors.As(err, &e) && !errors.As(err, &many) && !errors.As(err, &split) && !errors.As(err, &merge) &&
		!errors.Is(err, fabric.ErrNoHosts) {
		t.Fatalf("an error without a type: %T %v\n%s", err, err, text)
	}
	if e != nil && e.Pos.File == "" && e.Pos.Line == 0 {
		t.Fatalf("an error without a place: %v\n%s", err, text)
	}
}

// plans makes and proves some operations.
func plans(t *testing.T, g *generator, c *comm.Comm, text string) {
	for range 3 {
		op := comm.Op{Func: coll.Func(g.next(int(coll.NumFuncs))),
			Count: int64(g.next(5)) * int64(g.next(3000)), Type: coll.Float32,
			RedOp: coll.Sum, Root: int32(g.next(c.NRanks)), InPlace: g.next(2) == 1}
		pl, _, err := c.Plan(op)
		if err != nil {
			continue
		}
		if err := check.Plan(pl); err != nil && !errors.Is(err, plan.ErrUnsupported) {
			t.Fatalf("%v of %d: %v\n%s", op.Func, op.Count, err, text)
		}
	}
}

// generator turns bytes into a topology; at their end it goes on with zeros.
type generator struct {
	script []byte
	at     int
	out    strings.Builder
	open   []string
	buses  int
	gpus   int
}

func (g *generator) next(n int) int {
	if g.at >= len(g.script) {
		return 0
	}
	v := int(g.script[g.at])
	g.at++
	return v % n
}

func (g *generator) pick(words ...string) string { return words[g.next(len(words))] }

func (g *generator) start(name, attrs string) {
	if len(g.open) < 10 {
		fmt.Fprintf(&g.out, "<%s%s>", name, attrs)
		g.open = append(g.open, name)
	}
}

func (g *generator) close() {
	if n := len(g.open) - 1; n >= 0 {
		fmt.Fprintf(&g.out, "</%s>", g.open[n])
		g.open = g.open[:n]
	}
}

func (g *generator) topology() string {
	g.out.WriteString(`<system version="1">`)
	for n := 0; g.at < len(g.script) && n < 80; n++ {
		g.element(g.next(12))
	}
	for len(g.open) > 0 {
		g.close()
	}
	g.out.WriteString("</system>")
	return g.out.String()
}

// bus is a bus id: mostly a new one, sometimes one that is there.
func (g *generator) bus() string {
	if g.buses++; g.next(8) == 7 {
		return fmt.Sprintf("0000:%02x:00.0", g.next(1+g.buses))
	}
	return fmt.Sprintf("0000:%02x:00.%x", g.buses, g.next(2))
}

// attr writes an attribute, or in one of sixteen cases leaves it out.
func (g *generator) attr(name, value string) string {
	if g.next(16) == 15 {
		return ""
	}
	return fmt.Sprintf(" %s=%q", name, value)
}

func (g *generator) number(name string, n, from int) string {
	return g.attr(name, fmt.Sprint(g.next(n)+from))
}

func (g *generator) element(kind int) {
	switch kind {
	case 0:
		g.start("cpu", g.number("numaid", 4, -1)+g.attr("host_hash", fmt.Sprintf("0x%x", g.next(3)))+
			g.attr("affinity", fmt.Sprintf("%x", g.next(16)))+
			g.attr("arch", g.pick("x86_64", "arm64", "ppc64", ""))+
			g.attr("vendor", g.pick("GenuineIntel", "AuthenticAMD", "CentaurHauls", "x"))+
			g.number("familyid", 8, 0)+g.number("modelid", 210, 0))
	case 1, 2:
		g.start("pci", g.attr("busid", g.bus())+g.attr("class", g.pick("0x030200", "0x020000", "0x060400",
			"0x068000", "0x068001", "0x120000"))+
			g.attr("vendor", g.pick("0x1000", "0x10de"))+
			g.attr("device", g.pick("0xc010", "0xc030", "0x2330"))+
			g.attr("subsystem_vendor", "0x1000")+g.attr("subsystem_device", g.pick("0xa000", "0x1000"))+
			g.attr("link_speed", g.pick("16.0 GT/s PCIe", "32.0 GT/s PCIe", "", "Unknown"))+
			g.number("link_width", 33, 0))
	case 3, 4:
		g.start("gpu", fmt.Sprintf(" dev=\"%d\"", g.gpus-g.next(2))+
			g.attr("sm", g.pick("90", "80", "70", "100", "60", "0"))+
			g.attr("rank", fmt.Sprint(g.gpus))+g.number("gdr", 2, 0))
		g.gpus++
	case 5:
		g.start("nvlink",
			g.attr("target", g.pick("ffff:ff:ff.f", fmt.Sprintf("0000:%02x:00.0", g.next(1+g.buses)),
				"fffffff:ffff:ff"))+
				g.number("count", 20, -1)+g.attr("tclass", g.pick("0x030200", "0x068000", "0x068001",
				"0x060400")))
		g.close()
	case 6:
		g.start("c2c", g.number("bw", 250, 0)+g.number("count", 3, 0))
		g.close()
	case 7:
		g.start("nic", "")
	case 8:
		g.start("net", g.attr("name", fmt.Sprintf("%s_%d", g.pick("mlx5", "eth", "ib"), g.next(4)))+
			g.number("dev", 5, 0)+g.attr("speed", fmt.Sprint(g.next(255)*2000))+
			g.number("port", 3, 0)+g.number("latency", 3, 0)+g.attr("guid", fmt.Sprintf("0x%x", g.next(4)))+
			g.number("maxconn", 200, 0)+g.number("gdr", 2, 0)+g.number("coll", 2, 0))
		g.close()
	case 9:
		g.start("pcilink", g.attr("target", fmt.Sprintf("0000:%02x:00.0", g.next(1+g.buses))))
		g.close()
	case 10:
		g.close()
		g.close()
	default:
		g.close()
	}
}

// params are some settings of the stages.
func (g *generator) params() (topo.Params, comm.Params) {
	p := topo.DefaultParams()
	bits := g.next(256)
	p.SHMDisable, p.NVBDisable, p.PXNDisable = bits&1 != 0, bits&2 != 0, bits&4 != 0
	p.SocketsOnly, p.CollNet, p.MergeNICsDisabled = bits&8 != 0, bits&16 != 0, bits&32 != 0
	if bits&64 != 0 {
		p.P2PLevel = units.Some(topo.PathKind(g.next(int(topo.PathDIS))))
	}
	if bits&128 != 0 {
		p.MergeLevel = units.Some(topo.PathKind(g.next(int(topo.PathDIS))))
	}
	c := comm.Params{Rules: rules.Default(), Access: p.Access, Multicast: comm.Multicast(g.next(3))}
	c.Connect.CollNet = p.CollNet
	return p, c
}
