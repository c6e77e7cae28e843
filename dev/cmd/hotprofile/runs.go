package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runs are what is profiled, and how often each: rows of docs/results/BENCHMARKS.md and
// docs/results/SCALE.md, packets under collectives and with the files of their simulators,
// and traces. Each kind takes some seconds.
var runs = []struct {
	times int
	args  string
}{
	{3, "run all_reduce -b 64M -e 64M --nodes 16 --env NCCL_ALGO=Ring -c 0 --fold off --skip off"},
	{2, "run all_reduce -b 16M -e 16M --nodes 16 --env NCCL_ALGO=Ring --fabric leaf16 -c 0 --fold off " +
		"--skip off"},
	{2, "run all_reduce -b 64M -e 64M --nodes 16 --env NCCL_ALGO=Ring --fault nic=node0/2:slow=4 -c 0 " +
		"--fold off --skip off"},
	{2, "run all_reduce -b 16M -e 16M --nodes 16 --env NCCL_ALGO=Tree --fabric leaf16 -c 0 --fold off " +
		"--skip off"},
	{2, "run all_reduce -b 4M -e 4M --nodes 64 --env NCCL_ALGO=Tree -c 0 --fold off --skip off"},
	{2, "run all_reduce -b 256M -e 256M --nodes 2 --env NCCL_ALGO=NVLSTree -c 0 --fold off --skip off"},
	{2, "run alltoall -b 2M -e 2M --nodes 10 --fabric leaf10 -c 0 --fold off --skip off"},
	{2, "run alltoall -b 64M -e 64M --nodes 2 -c 0 --fold off --skip off"},

	{2, "run all_reduce -b 8 -e 16G -f 2 --nodes 8"},
	{2, "run all_gather -b 8 -e 16G -f 2 --nodes 4"},
	{2, "run alltoall -b 8 -e 16G -f 2 --nodes 2"},

	{2, "run all_reduce -b 64M -e 64M --nodes 2 --env NCCL_ALGO=Ring -c 0 --trace t.json"},
	{2, "run all_reduce -b 64M -e 64M --nodes 2 --env NCCL_ALGO=Ring -c 0 --trace t.json.gz"},
	{2, "run all_reduce -b 64M -e 64M --nodes 2 --env NCCL_ALGO=Ring -c 0 --trace t.pftrace"},
	{2, "trace validate t.json"},
	{2, "trace stats t.json"},

	{2, "run all_reduce -b 64M -e 64M --nodes 8 -c 0 --network packet"},
	{2, "run alltoall -b 16M -e 16M --nodes 4 -c 0 --network packet"},
	{2, "run all_reduce -b 64M -e 64M --nodes 8 -c 0 --network hybrid"},

	{3, "network run --workers 1 --ns3 perm.txt"},
	{3, "network run --workers 1 --ns3 perm.txt --cc dcqcn:ns3"},
	{2, "network run --workers 1 --ns3 perm.txt --cc hpcc"},
	{3, "network run --workers 1 --ns3 alltoall.txt"},
	{3, "network run --workers 1 --ns3 alltoall.txt --cc dcqcn:ns3"},
	{3, "network run --workers 1 --ns3 alltoall.txt --cc hpcc"},
	{3, "network run --workers 1 --ns3 incast.txt"},
	{3, "network run --workers 1 --ns3 incast.txt --cc dcqcn:ns3"},
	{3, "network run --workers 1 --ns3 ring.txt --cc dcqcn:ns3"},
	{4, "network run --workers 1 --ns3 star.txt --cc hpcc"},
	{2, "network run --workers 1 --ns3 star.txt --cc timely"},
	{2, "network run --workers 1 --ns3 star.txt --cc dctcp"},
	{2, "network run --workers 1 --ns3 star.txt --cc dcqcn:ns3"},
	{9, "network run --workers 1 --htsim perm.cm --topo leafspine.topo --lb mixed"},
	{9, "network run --workers 1 --htsim perm.cm --topo leafspine.topo --lb ecmp"},
	{3, "network run --workers 1 --htsim perm.cm --topo leafspine.topo --cc roce"},
}

// Hosts of the scenarios, to each leaf and in all; each leaf has as many spines.
const perLeaf, hosts = 4, 32

// scenarios writes into dir what runs name: leaf-spine networks for collectives, and
// for the packet simulators the configuration in packets with more flows.
func scenarios(tool, packets, dir string) error {
	for name, n := range map[string]string{"leaf10": "10", "leaf16": "16"} { //lint:sorted files of their own
		text, err := exec.Command(tool, "topo", "fabric", "leaf-spine", "--hosts", n, "--nets", "8",
			"--per-leaf", "1", "--oversub", "2").Output()
		if err != nil {
			return fmt.Errorf("a leaf-spine network: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	files := map[string]string{"net.txt": leafSpine(), "one.txt": star(), "star.flows": flows(incast()),
		"perm.flows": flows(permutation()), "alltoall.flows": flows(alltoall()),
		"incast.flows": flows(incast()), "ring.flows": flows(ring())}
	for _, name := range []string{"config.txt", "perm.cm", "leafspine.topo"} {
		text, err := os.ReadFile(filepath.Join(packets, name))
		if err != nil {
			return err
		}
		files[name] = string(text)
	}
	for _, name := range []string{"perm", "alltoall", "incast", "ring", "star"} {
		files[name+".txt"] = strings.NewReplacer("TOPOLOGY_FILE topo.txt", "TOPOLOGY_FILE net.txt",
			"FLOW_FILE flow.txt", "FLOW_FILE "+name+".flows",
			"BUFFER_SIZE 4", "BUFFER_SIZE 32").Replace(files["config.txt"])
	}
	files["star.txt"] = strings.Replace(files["star.txt"], "net.txt", "one.txt", 1)
	for name, text := range files { //lint:sorted files of their own
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// leafSpine is a topology file of the HPCC simulator.
func leafSpine() string {
	const leaves, spines = hosts / perLeaf, perLeaf
	var ids, links strings.Builder
	for leaf := range leaves {
		fmt.Fprintf(&ids, "%d ", hosts+leaf)
		for h := range perLeaf {
			fmt.Fprintf(&links, "%d %d 100Gbps 1000ns 0\n", leaf*perLeaf+h, hosts+leaf)
		}
		for s := range spines {
			fmt.Fprintf(&links, "%d %d 100Gbps 1000ns 0\n", hosts+leaf, hosts+leaves+s)
		}
	}
	for s := range spines {
		fmt.Fprintf(&ids, "%d ", hosts+leaves+s)
	}
	return fmt.Sprintf("%d %d %d\n%s\n%s", hosts+leaves+spines, leaves+spines, hosts+leaves*spines,
		ids.String(), links.String())
}

// star is a topology file with all hosts at one switch.
func star() string {
	var links strings.Builder
	for h := range hosts {
		fmt.Fprintf(&links, "%d %d 100Gbps 1000ns 0\n", h, hosts)
	}
	return fmt.Sprintf("%d 1 %d\n%d\n%s", hosts+1, hosts, hosts, links.String())
}

// flow is bytes from a host to another, after the flow numbered after has ended, or
// -1.
type flow struct{ from, to, bytes, after int }

// flows is a flow file of the HPCC simulator.
func flows(all []flow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", len(all))
	for _, f := range all {
		deps := "0"
		if f.after >= 0 {
			deps = fmt.Sprintf("1 %d", f.after)
		}
		fmt.Fprintf(&b, "%d %d 3 100 %d 2.000000000 %s\n", f.from, f.to, f.bytes, deps)
	}
	return b.String()
}

func permutation() (all []flow) {
	for h := range hosts {
		all = append(all, flow{h, (h + hosts/2 + 3) % hosts, 8e6, -1})
	}
	return all
}

func alltoall() (all []flow) {
	for from := range hosts {
		for to := range hosts {
			if from != to {
				all = append(all, flow{from, to, 250e3, -1})
			}
		}
	}
	return all
}

func incast() (all []flow) {
	for h := 1; h < hosts; h++ {
		all = append(all, flow{h, 0, 4e6, -1})
	}
	return all
}

func ring() (all []flow) {
	for step := range 16 {
		for h := range hosts {
			after := -1
			if step > 0 {
				after = (step-1)*hosts + (h+hosts-1)%hosts
			}
			all = append(all, flow{h, (h + 1) % hosts, 500e3, after})
		}
	}
	return all
}
