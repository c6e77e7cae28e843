package sweep

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/fail"
)

// pair copies a scenario of ns-3, seven hosts at two switches, and returns its configuration.
func pair(t *testing.T, dir string) (config string) {
	t.Helper()
	for _, name := range []string{"config.txt", "topo.txt", "flow.txt"} {
		data, err := os.ReadFile(filepath.Join("../../testdata/packets", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.txt")
}

// TestNetworkRunsArePoints: options of network run are axes; a row has completion times, slowdown, pauses and
// the line's use; a key has what is in files that the configuration names.
func TestNetworkRunsArePoints(t *testing.T) {
	dir := t.TempDir()
	text := "network: {ns3: " + pair(t, dir) + ", traffic: 'incast:3', bytes: 400000}\ngrid:\n" +
		"  cc: ['dcqcn:paper', hpcc]\n  fault: [[], 'link=7~8:slow=2']\nseeds: 1..2\nwhere: seed < 3\n"
	run := start(t, text, filepath.Join(dir, "out"))
	out, err := run.Do(t.Context())
	if err != nil || out.Ran != 8 || out.Failed != 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	for line := range strings.Lines(jsonl(t, filepath.Join(dir, "out"))) {
		var l struct {
			Rows []PacketRow `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.Rows) != 1 {
			t.Fatalf("%v\n%s", err, line)
		}
		// three flows of 400 kB share a line of 100 Gb/s: 96 us, more with headers
		if r := l.Rows[0]; r.Flows != 3 || r.Ended != 3 || r.TimeUs < 96 || r.FCTP99 < r.FCTP50 ||
			r.FCTP50 < 32 || r.SlowdownP99 < 1.5 || r.LineUse <= 0 || r.LineUse > 1 || r.PeakQueue <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if out, err = run.Do(t.Context()); err != nil || out.Done != 8 || out.Ran != 0 {
		t.Errorf("again: %+v, %v", out, err)
	}
	topo := filepath.Join(dir, "topo.txt")
	data, err := os.ReadFile(topo)
	if err == nil {
		err = os.WriteFile(topo, []byte(strings.ReplaceAll(string(data), "1000ns", "2000ns")), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err = start(t, text, filepath.Join(dir, "out")).Do(t.Context()); err == nil {
		t.Error("another topology is taken for the same sweep")
	}
}

// TestNetworkOptionsAreChecked: what network run refuses is refused before anything runs, where it is
// written.
func TestNetworkOptionsAreChecked(t *testing.T) {
	dir := t.TempDir()
	head := "network: {ns3: " + pair(t, dir) + ", traffic: 'incast:3'}\n"
	for _, c := range []struct{ text, place, want string }{
		{head + "grid: {cc: [hpcc, nosuch]}\n", "s.yaml:2:19", "cc"},
		{head + "grid: {nosuch: [1]}\n", "s.yaml:2:17", "no option --nosuch"},
		{head + "grid: {load: [high]}\n", "s.yaml:2:15", "string where float64"},
		{head + "grid: {ecn: [100/50/0.2]}\n", "s.yaml:2:14", "KMIN is at most KMAX"},
		{head + "grid: {traffic: ['incast:9']}\n", "s.yaml:2:18", "write incast:1 to incast:6"},
		{head + "base: {workload: {op: all_reduce}}\n", "s.yaml:1:1", "beside base"},
	} {
		var at *fail.FileError
		s, err := Parse([]byte(c.text), "s.yaml")
		if err == nil {
			_, err = start(t, c.text, t.TempDir()).Do(t.Context())
		}
		if !errors.As(err, &at) || !strings.HasPrefix(err.Error(), c.place) || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("%s: %v, want %s … %s (%v)", c.text, err, c.place, c.want, s != nil)
		}
	}
}
