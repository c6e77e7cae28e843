package accuracy

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// tally counts points within 10 % and all of them.
type tally struct{ near, all int }

func (t tally) String() string { return fmt.Sprintf("%d of %d", t.near, t.all) }

// published are the points of ACCURACY.md's tables between nodes, by section; those
// that the page has for information are not in it.
func published(t *testing.T) map[string]tally {
	text, err := os.ReadFile(golden.Root(t, "docs", "results", "ACCURACY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n# Between nodes: published tables against simulated ones\n")
	rest, _, _ = strings.Cut(rest, "\n## For information")
	out, section := map[string]tally{}, "InfiniBand and RoCE"
	last := regexp.MustCompile(`^\|.*\| (\d+) of (\d+) \|$`)
	for line := range strings.Lines(rest) {
		if head, ok := strings.CutPrefix(line, "##"); ok {
			section = strings.TrimLeft(strings.TrimSpace(head), "# ")
		}
		if m := last.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			near, _ := strconv.Atoi(m[1])
			all, _ := strconv.Atoi(m[2])
			s := out[section]
			out[section] = tally{s.near + near, s.all + all}
		}
	}
	return out
}

// TestReadmeSaysTheAccuracyOfEachKindOfNetwork: not of the best table alone.
func TestReadmeSaysTheAccuracyOfEachKindOfNetwork(t *testing.T) {
	by := published(t)
	sum := func(names ...string) (s tally) {
		for _, n := range names {
			if by[n].all == 0 {
				t.Errorf("ACCURACY.md has no section %q with points: %v", n, by)
			}
			s = tally{s.near + by[n].near, s.all + by[n].all}
		}
		return s
	}
	const hard, alps = "A hard case: Polaris", "Alps, Slingshot"
	clouds := []string{"AWS, EFA", "Google Cloud, TCPXO", "Google Cloud, TCPX", "Google Cloud, RoCE"}
	known := sum(append(clouds, "InfiniBand and RoCE", hard, alps)...)
	all := tally{}
	for _, s := range by {
		all = tally{all.near + s.near, all.all + s.all}
	}
	if known != all {
		t.Errorf("ACCURACY.md has sections that the README leaves out: %v", by)
	}
	inReadme(t, fmt.Sprintf("Points within 10 %%: InfiniBand and RoCE clusters %v; Slingshot %v (Polaris "+
		"%v, Alps %v); clouds %v (EFA %v, TCPXO %v, TCPX %v, RoCE %v).",
		sum("InfiniBand and RoCE"), sum(hard, alps), sum(hard), sum(alps), sum(clouds...), by[clouds[0]],
		by[clouds[1]], by[clouds[2]], by[clouds[3]]))
}

// TestReadmeSaysWhatIsExact: of 102,400 ranks the time and the margin of SCALE.md's
// rows, which are near, and of the largest folded ring its time.
func TestReadmeSaysWhatIsExact(t *testing.T) {
	text, err := os.ReadFile(golden.Root(t, "docs", "results", "SCALE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(
		`(?m)^\| all_reduce \| (\d+) \| ([^|]*) \| [^|]* \| [^|]* \| (folded|near, within (\d+) %) \| ([\d.]+) s \|`).FindAllStringSubmatch(string(text), -1)
	least, most, ring := 1e9, 0.0, ""
	margins := map[string]bool{}
	for _, m := range rows {
		cpu, _ := strconv.ParseFloat(m[5], 64)
		switch {
		case m[1] == "102400":
			least, most = min(least, cpu), max(most, cpu)
			if margins[m[4]] = true; m[3] == "folded" {
				t.Errorf("all_reduce of 102,400 ranks is folded: say so: %q", m[0])
			}
		case m[1] == "16384" && strings.Contains(m[2], "Ring") && m[3] == "folded":
			ring = fmt.Sprintf("over a ring of 16,384 ranks takes %.1f s of a processor.", cpu)
		}
	}
	if !margins["3"] || !margins["5"] || len(margins) != 2 {
		t.Errorf("margins %v, the README has 3 and 5 %%", margins)
	}
	inReadme(t, fmt.Sprintf("to simulate 102,400 ranks takes %.1f to %.1f s, and the output states the "+
		"error that this adds, 3 or 5 %%.", least, most))
	inReadme(t, ring)
}

// TestReadmeSaysTheAccuracyOverTCP: the means of TIMING.md's rows, which
// TestAccuracyOverSockets holds to what is simulated.
func TestReadmeSaysTheAccuracyOverTCP(t *testing.T) {
	text, err := os.ReadFile(golden.Root(t, "docs", "TIMING.md"))
	if err != nil {
		t.Fatal(err)
	}
	var large []string
	least, most := 100, 0
	for _, m := range regexp.MustCompile(
		`(?m)^\| \d hosts of \d GPUs? \| (\S+ to [^|]*) \| \d+ \| (\d+) \|`).FindAllStringSubmatch(
		string(text), -1) {
		if m[1] == "4 to 64 MiB" {
			large = append(large, m[2])
			continue
		}
		v, _ := strconv.Atoi(m[2])
		least, most = min(least, v), max(most, v)
	}
	inReadme(t, fmt.Sprintf("mean errors of %s %% for 4 MiB and larger (four hosts of one GPU, two of "+
		"two), %d to %d %% for smaller sizes",
		strings.Join(large, " and "), least, most))
}

func inReadme(t *testing.T, want string) {
	t.Helper()
	text, err := os.ReadFile(golden.Root(t, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want == "" || !strings.Contains(string(text), want) {
		t.Errorf("README.md does not have %q; its figures are those of the pages it links to", want)
	}
}
