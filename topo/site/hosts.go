package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/termtext"
)

// Hosts reads the names of a job's hosts in the order of its ranks: a nodelist of Slurm ("node[01-16]";
// several lines are one list), a host file of MPI (one host per line, with slots=N or host:N; repeated lines
// are one host), or the output of kubectl get nodes -o json (or of get pods, whose spec.nodeName is used).
func Hosts(data []byte, file string) ([]string, error) {
	text := bytes.TrimSpace(data)
	if bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("[")) && json.Valid(text) {
		return kubernetes(text, file)
	}
	var out []string
	for i, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		name, col := fields[0], 1+strings.Index(line, fields[0])
		for _, f := range fields[1:] { // slots=8, max_slots=8, of Intel's and MPICH's files nothing
			if key, v, ok := strings.Cut(f, "="); !ok || v == "" || key == "" {
				return nil, fail.At(file, i+1, 1+strings.Index(line, f), "not understood: "+
					termtext.Quote(f, 40),
					"a host file has one host a line: node1 slots=8")
			}
		}
		if !strings.Contains(name, "[") { // MPICH: host:processes
			name, _, _ = strings.Cut(name, ":")
		}
		list, err := Hostlist(strings.Trim(name, ","))
		if err != nil {
			return nil, fail.At(file, i+1, col, err.Error(), "lists are like node[01-16,20],login1")
		}
		for _, h := range list {
			if out = append(out, h); len(out) > maxHosts {
				return nil, fail.At(file, i+1, col, fmt.Sprintf("more than %d hosts", maxHosts), "give fewer")
			}
		}
	}
	return unique(out, file)
}

var (
	nodelist = regexp.MustCompile(
		`^([A-Za-z][\w.-]*(\[[0-9,-]+\][\w.-]*)*)(,[A-Za-z][\w.-]*(\[[0-9,-]+\][\w.-]*)*)*$`)
	slots = regexp.MustCompile(`^(max_)?(slots|max-slots)=\d+$`)
)

// IsHostList reports whether the words of a file's first lines look like a host list: each line a name with a
// number or a bracketed range, optionally followed by slots.
func IsHostList(lines [][]string) bool {
	for _, l := range lines {
		name := l[0]
		if before, n, ok := strings.Cut(name, ":"); ok && strings.Trim(n, "0123456789") == "" {
			name = before
		}
		if len(l) > 2 || len(l) == 2 && !slots.MatchString(l[1]) || !nodelist.MatchString(name) ||
			!strings.ContainsAny(name, "0123456789") {
			return false
		}
	}
	return true
}

// unique removes repeated hosts, which MPI's hostfiles have for slots. An empty list is an error.
func unique(list []string, file string) ([]string, error) {
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(h string) bool {
		was := seen[h]
		seen[h] = true
		return was
	})
	if len(list) == 0 {
		return nil, fail.At(file, 1, 1, "no host is named here", "write node[01-16], or one host a line")
	}
	return list, nil
}

// kubernetes reads the names of nodes, or of the nodes of pods, from kubectl's JSON.
func kubernetes(data []byte, file string) ([]string, error) {
	var list struct {
		Kind  string
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				NodeName string `json:"nodeName"`
			}
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		line, col := 1, 1
		var e *json.SyntaxError
		if at, ok := err.(*json.SyntaxError); ok {
			e = at
			before := data[:min(int(e.Offset), len(data))]
			line += bytes.Count(before, []byte("\n"))
			col = len(before) - bytes.LastIndexByte(before, '\n')
		}
		return nil, fail.At(file, line, col, err.Error(), "give what kubectl get nodes -o json prints")
	}
	var out []string
	for _, x := range list.Items {
		name := x.Spec.NodeName
		if name == "" && x.Kind != "Pod" {
			name = x.Metadata.Name
		}
		if name != "" {
			out = append(out, name)
		}
	}
	return unique(out, file)
}
