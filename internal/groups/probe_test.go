package groups

import (
	"fmt"
	"os"
	"testing"

	"github.com/simccl/simccl/plan/launch"
)

func TestProbe(t *testing.T) {
	if os.Getenv("SHOW") == "" {
		t.Skip()
	}
	for _, file := range []struct {
		name string
		gpus int
	}{{"plain4.txt", 4}, {"plain2.txt", 2}, {"split0_4.txt", 4}, {"split1_4.txt", 4}, {"win4.txt", 4}} {
		m := machine(t, file.gpus)
		fmt.Sscanf(os.Getenv("WORKS"), "%g,%g,%g", &m.site.Class.Works.Batch, &m.site.Class.Works.Work, &m.site.Class.Works.GraphLaunch)
		groups := recorded(t, file.name)
		m.SetOrder(m.OrderOf(groups))
		for i := range groups {
			g := &groups[i]
			us, err := m.Time(t.Context(), g)
			if err != nil {
				continue
			}
			launched, _ := m.launch(g, launch.Captured)
			kernels, sym := 0, 0
			desc := ""
			for _, l := range launched {
				for k := range l.Kernels {
					kernels++
					if l.Kernels[k].Symmetric != nil {
						sym++
						continue
					}
					p, err := l.Kernels[k].Plan(l.member.Launcher(nil))
					if err != nil {
						continue
					}
					batches, works, phases := 0, 0, 0
					for r := range int32(p.Comm.NRanks) {
						b, w := map[int32]int{}, map[int32]int{}
						last := map[int32]int32{}
						for _, pr := range p.Programs(r) {
							ph, ok := last[pr.Channel]
							if ok && ph == pr.Phase {
								continue
							}
							last[pr.Channel] = pr.Phase
							if pr.Fused {
								w[pr.Channel]++
							} else {
								b[pr.Channel]++
							}
						}
						for ch := range b {
							if b[ch]+w[ch] > phases {
								phases, batches, works = b[ch]+w[ch], b[ch], w[ch]
							}
						}
					}
					first := p.Comm.Channels[0].Order
					_ = first
					desc += fmt.Sprintf(" [%v b%d w%d t%d x%v]", l.Ranks, batches, works, len(l.Kernels[k].Tasks), l.Kernels[k].Exchanges != nil)
				}
			}
			fmt.Printf("P %s %d tasks %d kernels %d sym %d meas %.2f sim %.2f diff %.2f %s\n", file.name, g.Number, len(g.Tasks), kernels, sym, g.TimeUs, us.Micros(), g.TimeUs-us.Micros(), desc)
		}
	}
}
