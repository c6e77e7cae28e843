// Command topology reads a topology file of NCCL, halves the lanes of each NIC's PCI link,
// and compares all_reduce on four such nodes before and after.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing/fstest"

	"github.com/simccl/simccl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func main() {
	name := "testdata/topos/dgx-h100.xml"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	before, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	spec, err := topoxml.Parse(before, name)
	if err != nil {
		log.Fatal(err) // file, line and column
	}
	for _, w := range spec.Warnings {
		fmt.Println("warning:", w)
	}
	root, nics := spec.Root.Clone(), 0
	for _, pci := range root.All("pci") {
		if pci.Child("nic") != nil {
			pci.Set("link_width", "8")
			nics++
		}
	}
	fmt.Printf("%d GPUs, %d NICs with 8 lanes in place of 16\n", len(root.All("gpu")), nics)
	files := fstest.MapFS{"before.xml": {Data: before}, "after.xml": {Data: topoxml.Write(root)}}
	for _, topo := range []string{"before.xml", "after.xml"} {
		r, err := simccl.Run(context.Background(), simccl.Spec{
			Machine:  simccl.Machine{Nodes: []simccl.Nodes{{Topo: topo, Count: 4}}},
			Workload: simccl.Workload{Op: "all_reduce", Sizes: []string{"256M"}},
		}, simccl.Options{Files: files})
		if err != nil {
			log.Fatal(err)
		}
		row := r.Rows[0]
		fmt.Printf("%-10s  %s %s, %d channels  %7.2f GB/s, limited by %s\n", topo, row.Facts.Algo,
			row.Facts.Proto, row.Facts.Channels, row.Out.BusBW, row.Facts.Limit)
	}
}
