package advise

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// settingsTable is testdata/measured/h200x2/advise/settings.csv: us by operation, bytes and
// setting ("" for none), the mean of two processes.
func settingsTable(t *testing.T) map[string]map[int64]map[string]float64 {
	t.Helper()
	f, err := os.Open(filepath.Join(root, "testdata/measured/h200x2/advise/settings.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[int64]map[string]float64{}
	for _, w := range rows[1:] {
		bytes, _ := strconv.ParseInt(w[1], 10, 64)
		a, _ := strconv.ParseFloat(w[3], 64)
		b, _ := strconv.ParseFloat(w[4], 64)
		if out[w[0]] == nil {
			out[w[0]] = map[int64]map[string]float64{}
		}
		if out[w[0]][bytes] == nil {
			out[w[0]][bytes] = map[string]float64{}
		}
		out[w[0]][bytes][w[2]] = (a + b) / 2
	}
	return out
}

// names writes a setting as the table does: what forces the algorithm forces that of
// all_reduce alone.
func (s *Setting) names() string {
	return strings.ReplaceAll(strings.Join(s.Lines(), " "), "=Tree", "=allreduce:tree")
}

// same is what NCCL runs under a setting at a size: its choice and channels, and the
// simulated time for what buffers and threads change. Settings that lead to the same are
// measurements of one thing.
func (c *cell) same() string { return fmt.Sprint(c.algo, c.channels, c.time) }

// runs are the measured times at size i by what NCCL runs, means over the settings that
// lead there.
func (r *Report) runs(i int, us map[string]float64) map[string]float64 {
	all := map[string][]float64{r.base.cells[i].same(): {us[""]}}
	for j := range r.trials {
		x := &r.trials[j]
		if m := us[x.names()]; m > 0 {
			all[x.cells[i].same()] = append(all[x.cells[i].same()], m)
		}
	}
	out := map[string]float64{}
	for k, v := range all {
		out[k] = mean(v)
	}
	return out
}

// advised is what runs at size i under the setting that the report names there.
func (r *Report) advised(i int) (setting, run string) {
	for j := range r.trials {
		if x := &r.trials[j]; r.Rows[i].Best == strings.Join(x.Lines(), " ") {
			return r.Rows[i].Best, x.cells[i].same()
		}
	}
	return "as it is", r.base.cells[i].same()
}

// TestSettingsAgainstMeasurement: of all settings that were measured on two GPUs the advised
// one, or none where nothing is advised, is the fastest or within 3 % of it; and errors of
// gains by kind are those of ofKind.
func TestSettingsAgainstMeasurement(t *testing.T) {
	table := settingsTable(t)
	errs := map[kind][2][]float64{}
	all, allGood := 0, 0
	for _, op := range []string{"all_reduce", "all_gather", "reduce_scatter"} {
		r, err := New(context.Background(), measuredHere(op, 2, "8", "64", "512", "4K", "32K", "256K", "2M",
			"16M", "128M", "1G"))
		if err != nil {
			t.Fatal(err)
		}
		of, good := 0, 0
		for i, c := range r.base.cells {
			us := table[op][c.bytes]
			if len(us) == 0 {
				continue // all_gather and reduce_scatter of 8 B move nothing
			}
			runs, least := r.runs(i, us), math.Inf(1)
			for _, m := range runs {
				least = min(least, m)
			}
			name, run := r.advised(i)
			chosen := runs[run]
			of++
			if chosen > 0 && chosen <= 1.03*least {
				good++
			} else {
				t.Logf("%s, %d bytes: %s, %.2f us, the fastest %.2f", op, c.bytes, name, chosen, least)
			}
			gains(r, i, us, errs)
		}
		t.Logf("%s: %d of %d", op, good, of)
		if all, allGood = all+of, allGood+good; of < 9 || good < of-1 {
			t.Errorf("%s: the advised setting is the fastest or within 3 %% at %d of %d sizes", op, good, of)
		}
	}
	if 10*allGood < 9*all {
		t.Errorf("%d of %d sizes", allGood, all)
	}
	for k, r := range ofKind {
		if have, want := fmt.Sprintf("%.3f %.3f", mean(errs[k][0]), mean(errs[k][1])),
			fmt.Sprintf("%.3f %.3f", r.all, r.large); have != want {
			t.Errorf("gains of settings of kind %d are %s off in the mean, ofKind says %s", k, have, want)
		}
	}
}

// gains adds how far simulated gains at size i are from measured ones, by kind, of settings
// that change the simulated time.
func gains(r *Report, i int, us map[string]float64, errs map[kind][2][]float64) {
	for j := range r.trials {
		x := &r.trials[j]
		m := us[x.names()]
		if m == 0 || x.cells[i].time == r.base.cells[i].time {
			continue
		}
		large := 0
		if r.base.cells[i].bytes >= 1<<20 {
			large = 1
		}
		e := errs[x.kind]
		e[large] = append(e[large], math.Abs(x.gain(r.base, i)/(us[""]/m)-1))
		errs[x.kind] = e
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(max(len(v), 1))
}
