package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func ownTable() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: own DIR GPUS")
		os.Exit(2)
	}
	if err := table(os.Stdout, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "own:", err)
		os.Exit(1)
	}
}

var operations = []string{"all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce",
	"gather", "scatter", "sendrecv"}

// sizes lists the measured sizes in bytes, the smallest first.
func sizes(rows map[string][]string) (out []int64) {
	for text := range rows { //lint:sorted below
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// named writes a size as 64 KiB.
func named(n int64) string {
	unit := 0
	for ; unit < 3 && n >= 1024 && n%1024 == 0; unit++ {
		n /= 1024
	}
	return fmt.Sprintf("%d %s", n, [...]string{"B", "KiB", "MiB", "GiB"}[unit])
}

// table writes the table of a directory's files of so many GPUs.
func table(w io.Writer, dir, gpus string) error {
	torch, err := fastest(filepath.Join(dir, "symmetric_torch_"+gpus+".txt"))
	if err != nil {
		return err
	}
	fmt.Fprintln(w,
		"| operation | size | ours, us | by | NCCL | NCCL -R 2 | PyTorch |\n|---|---|---|---|---|---|---|")
	for _, op := range operations {
		own := map[string][]string{}
		for _, part := range []string{"free_", "free_large_"} {
			if err := rows(filepath.Join(dir, part+op+"_"+gpus+".txt"), own); err != nil {
				return err
			}
		}
		windows := map[string][]string{}
		if err := rows(filepath.Join(dir, "symmetric_"+op+"_"+gpus+".txt"), windows); err != nil &&
			!os.IsNotExist(err) {
			return err
		}
		for _, n := range sizes(own) {
			z := strconv.FormatInt(n, 10)
			r := own[z]
			if len(r) < 15 {
				continue
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", op, named(n), r[5], r[13], r[14],
				column(windows[z], 5), orDash(torch[op+" "+z]))
		}
	}
	return nil
}

// rows adds the rows of a table of bench by their size.
func rows(name string, to map[string][]string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 12 && f[0] != "#" {
			to[f[0]] = f
		}
	}
	return nil
}

func column(f []string, i int) string {
	if i >= len(f) {
		return orDash("")
	}
	return f[i]
}

func orDash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}

// fastest reads lines OPERATION[/ALGORITHM] BYTES MICROSECONDS and keeps the least time
// of each operation and size.
func fastest(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	least, out := map[string]float64{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] == "#" {
			continue
		}
		us, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			continue
		}
		op, _, _ := strings.Cut(f[0], "/")
		key := op + " " + f[1]
		if old, known := least[key]; !known || us < old {
			least[key], out[key] = us, strconv.FormatFloat(us, 'f', -1, 64)
		}
	}
	return out, nil
}
