package search_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestHeadsOfReleases: on a DGX H100 with a second card at GPU 0 and none at GPUs 2
// and 5, NCCL 2.21.5 makes GPU 0 the head of two NVLS channels; since 2.22.3 a GPU
// heads one (search.cc:594 of v2.21.5, :628 of v2.22.3). NCCL's code was run on this
// machine for both.
func TestHeadsOfReleases(t *testing.T) {
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", "dgx-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	card := regexp.MustCompile(`(?s) *<pci busid="0000:18:00\.0".*?</pci>\n`).FindString(text)
	second := strings.NewReplacer("0000:18:00.0", "0000:19:00.0", "mlx5_0", "mlx5_x", `dev="0"`, `dev="8"`,
		"0x200c00000000001", "0x77").Replace(card)
	text = strings.Replace(text, card, card+second, 1)
	for _, name := range []string{"mlx5_4", "mlx5_9"} {
		text = regexp.MustCompile(`<net [^>]*name="`+name+`"[^>]*/>`).ReplaceAllString(text, "")
	}
	text = regexp.MustCompile(`(<net [^>]*?) dev="\d+"`).ReplaceAllString(text, "$1")
	spec, err := topoxml.Parse([]byte(text), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	for release, want := range map[string]string{
		"2.21.5": "7 of 24: 0 0 1 3 4 6 7",
		"2.22.3": "6 of 48: 0 1 3 4 6 7",
		"2.23.4": "6 of 48: 0 1 3 4 6 7",
	} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.ParamsOf(r)
		p.NRanks = 16
		h, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		g, err := search.Compute(h.System(0), search.Want{ID: search.NVLSID, Pattern: search.NVLSPattern,
			MinChannels: 1, MaxChannels: r.MaxChannels}, search.Params{Rules: r})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%d of %g:", g.NChannels, g.BWInter)
		for _, c := range g.Intra {
			got += fmt.Sprintf(" %d", c[0])
		}
		if got != want {
			t.Errorf("NCCL %s: NVLS heads %s, want %s", release, got, want)
		}
	}
}
