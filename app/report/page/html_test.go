package page

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// themes are the variables of the style, light and dark.
func themes(t *testing.T) [2]map[string]string {
	t.Helper()
	light, dark, ok := strings.Cut(Style(), "@media screen and (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("no dark theme")
	}
	dark, _, _ = strings.Cut(dark, "} }")
	var out [2]map[string]string
	for i, text := range []string{light, dark} {
		out[i] = map[string]string{}
		for _, m := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]+)`).FindAllStringSubmatch(text, -1) {
			out[i][m[1]] = m[2]
		}
	}
	return out
}

// light is the linear light of the three colours of #rgb or #rrggbb.
func light(t *testing.T, colour string) (rgb [3]float64) {
	t.Helper()
	h := strings.TrimPrefix(colour, "#")
	if len(h) == 3 {
		h = h[:1] + h[:1] + h[1:2] + h[1:2] + h[2:] + h[2:]
	}
	for i := range rgb {
		v, err := strconv.ParseUint(h[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatalf("colour %q", colour)
		}
		if c := float64(v) / 255; c <= 0.04045 {
			rgb[i] = c / 12.92
		} else {
			rgb[i] = math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return rgb
}

// contrast is WCAG 2.2's contrast ratio (success criterion 1.4.3).
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	of := func(c string) float64 {
		rgb := light(t, c)
		return 0.2126*rgb[0] + 0.7152*rgb[1] + 0.0722*rgb[2]
	}
	x, y := of(a), of(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text has a contrast of 4.5 in both themes, in cells of the ramp too; what carries
// meaning without being text has 3.
func TestContrast(t *testing.T) {
	for i, v := range themes(t) {
		least := func(least float64, a string, on ...string) {
			for _, b := range on {
				if c := contrast(t, v[a], v[b]); c < least {
					t.Errorf("theme %d: --%s on --%s has %.2f", i, a, b, c)
				}
			}
		}
		for _, ink := range []string{"fg", "soft", "sim", "alt", "bad"} {
			least(4.5, ink, "bg", "card")
		}
		for n := range steps {
			s := strconv.Itoa(n)
			least(4.5, "i"+s, "r"+s)
		}
		for _, k := range []string{"k-blue", "k-orange", "k-green", "k-purple", "k-teal", "k-olive", "k-grey",
			"edge", "r3", "r4", "r5", "r6"} {
			least(3, k, "bg")
		}
		least(4.5, "on", "alt")
	}
}

// lightness is OKLab's L (B. Ottosson, 2020) of linear sRGB, also as seen without the
// red or the green cones (Machado, Oliveira, Fernandes 2009, severity 1).
func lightness(rgb [3]float64) float64 {
	l := math.Cbrt(0.4122214708*rgb[0] + 0.5363325363*rgb[1] + 0.0514459929*rgb[2])
	m := math.Cbrt(0.2119034982*rgb[0] + 0.6806995451*rgb[1] + 0.1073969566*rgb[2])
	s := math.Cbrt(0.0883024619*rgb[0] + 0.2817188376*rgb[1] + 0.6299787005*rgb[2])
	return 0.2104542553*l + 0.7936177850*m - 0.0040720468*s
}

var blind = [][3][3]float64{
	{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
}

// The ramp is even in lightness, for eyes without red or green cones too.
func TestRampIsEven(t *testing.T) {
	for i, v := range themes(t) {
		for kind, m := range blind {
			var l []float64
			for n := range steps {
				c := light(t, v["r"+strconv.Itoa(n)])
				var seen [3]float64
				for r := range m {
					seen[r] = max(0, m[r][0]*c[0]+m[r][1]*c[1]+m[r][2]*c[2])
				}
				l = append(l, lightness(seen))
			}
			mean := (l[steps-1] - l[0]) / (steps - 1)
			for n := 1; n < steps; n++ {
				if d := (l[n] - l[n-1]) / mean; d < 0.6 || d > 1.4 {
					t.Errorf("theme %d, eyes %d: step %d is %.2f of the mean step", i, kind, n, d)
				}
			}
		}
	}
}

// A line of the summary does not end between a number and its unit; names and commands stay as they are.
func TestNumbersStayWithTheirUnits(t *testing.T) {
	d := doc{Title: "t", Command: "simccl run --sizes 8 B",
		Answer: "28.32 us at 1 KiB, 3 % of 5 Gb/s, 4 Bands"}
	page := d.Page()
	if want := "28.32\u00a0us at 1\u00a0KiB, 3\u00a0% of 5\u00a0Gb/s, 4 Bands"; !strings.Contains(page,
		want) || !strings.Contains(page, " 8 B</code>") {
		t.Errorf("no %q in\n%s", want, page[strings.Index(page, "<header>"):])
	}
}

// TestNoLineEndsWithinAValue: neither between a number and its unit nor within a range.
func TestNoLineEndsWithinAValue(t *testing.T) {
	want := "16\u00a0× GPU0–\u20607→<wbr>NVSwitch, 5\u00a0GB/s"
	if got := joined("16 × GPU0–7→NVSwitch, 5 GB/s"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoLineEndsWithinAnOption: the command above a report is broken between its words.
func TestNoLineEndsWithinAnOption(t *testing.T) {
	d := &doc{Command: "simccl run --topo dgx-h100 -b 1M"}
	want := "<code>simccl run <span>--topo</span> dgx-h100 <span>-b</span> 1M</code>"
	if got := d.Page(); !strings.Contains(got, want) {
		t.Errorf("no %s in\n%s", want, got)
	}
}
