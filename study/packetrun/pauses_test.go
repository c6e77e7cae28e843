package packetrun

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestPausesReference: where ports are paused and nothing is marked all flows end as with the peer, to the
// ns, by default.
func TestPausesReference(t *testing.T) {
	files := unpack(t, "ns3_inputs.tar.gz")
	paused := 0
	for _, name := range []string{"ii_incast_pfc_2to1_1mb", "ii_incast_pfc_2to1_10mb",
		"ii_incast_pfc_4to1_1mb", "ii_incast_pfc_8to1_1mb", "ii_incast_pfc_32to1_1mb", "iv_victim_pfc",
		"v_ecmp_ls21_pfc"} {
		config := ""
		for file := range files { //lint:sorted names are unique
			if path.Base(path.Dir(file)) == name && path.Base(file) == "config.txt" {
				config = file
			}
		}
		r, err := NS3(config, options(files, 1))
		if err != nil {
			t.Fatal(name, err)
		}
		want := peerTimes(t, folder+"ns3/"+name+".fct.csv")
		for _, f := range r.Flows {
			if f.FctNs == nil {
				t.Fatalf("%s: flow %d to %d does not end", name, f.Src, f.Dst)
			}
			if at := want[[3]int{int(f.Src), int(f.Dst), int(f.SrcPort)}]; *f.FctNs != at {
				t.Errorf("%s: flow %d to %d: %d ns there, %d here", name, f.Src, f.Dst, at, *f.FctNs)
			}
		}
		if len(want) != len(r.Flows) {
			t.Errorf("%s: %d flows there, %d here", name, len(want), len(r.Flows))
		}
		if r.Pauses > 0 {
			paused++
		}
	}
	if paused < 4 {
		t.Errorf("ports were paused in %d scenarios", paused)
	}
}

// incast is an incast into a switch of a small buffer, where ports are paused long before the end and
// nothing is marked.
func incast(t *testing.T) map[string][]byte {
	config, err := os.ReadFile("../../testdata/packets/peer/unknown_rate_star/config.txt")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("CC_MODE 3", "CC_MODE 1").Replace(string(config))
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		key, _, _ := strings.Cut(line, " ")
		if !slices.Contains([]string{"BUFFER_SIZE", "ENABLE_QCN", "HAS_WIN", "KMAX_MAP", "KMIN_MAP",
			"PMAX_MAP"}, key) {
			lines = append(lines, line)
		}
	}
	lines = append(lines, "BUFFER_SIZE 2", "ENABLE_QCN 0", "HAS_WIN 0", "KMAX_MAP 1 100000000000 1600",
		"KMIN_MAP 1 100000000000 400", "PMAX_MAP 1 100000000000 0.2", "")
	const hosts = 9
	topo, flows := fmt.Sprintf("%d 1 %d\n%d\n", hosts+1, hosts, hosts), fmt.Sprintf("%d\n", hosts-1)
	for i := range hosts {
		topo += fmt.Sprintf("%d %d 100Gbps 1000ns 0\n", i, hosts)
		if i < hosts-1 {
			flows += fmt.Sprintf("%d %d 3 100 %d 0\n", i, hosts-1, 300000+1000*i)
		}
	}
	return map[string][]byte{"config.txt": []byte(strings.Join(lines, "\n")), "topo.txt": []byte(topo),
		"flow.txt": []byte(flows)}
}

// TestPausesExact: from the first pause on a run is that with ns-3's order of events.
func TestPausesExact(t *testing.T) {
	files := incast(t)
	run := func(compat string) *Report {
		o := options(files, 1)
		o.Compat = compat
		r, err := NS3("config.txt", o)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	got, want := run("ns3"), run("ns3:exact")
	if want.Pauses == 0 || want.Marks+want.Drops > 0 {
		t.Fatalf("%d pauses, %d marks, %d drops", want.Pauses, want.Marks, want.Drops)
	}
	if got.Pauses != want.Pauses {
		t.Errorf("%d pauses, %d with the order of events", got.Pauses, want.Pauses)
	}
	for i, f := range got.Flows {
		if *f.FctNs != *want.Flows[i].FctNs {
			t.Errorf("flow %d: %d ns, %d with the order of events", i, *f.FctNs, *want.Flows[i].FctNs)
		}
	}
}
