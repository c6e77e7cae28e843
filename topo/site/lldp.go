package site

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/jsonfile"
	"github.com/simccl/simccl/internal/termtext"
)

// lldpReader reads neighbours as lldpcli prints them with -f json or -f json0. In json a list of one is the
// one, values are written where json0 has {"value": …}, and names are keys.
type lldpReader struct {
	*jsonfile.Reader
	p     *Plan
	file  string
	data  []byte
	count int
}

// LLDP reads the neighbours that lldpcli reports: of one device, named by the file, or of several devices in
// an object of such outputs by device name.
func LLDP(data []byte, file string) (*Plan, error) {
	r := &lldpReader{Reader: jsonfile.New(data, file), p: newPlan(), file: file, data: data}
	r.p.files = []string{file}
	name := path.Base(strings.ReplaceAll(file, "\\", "/"))
	name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".json0"), ".json")
	err := r.Object(func(key string, at int64) error {
		if key == "lldp" {
			r.p.assume("%s", nameNote(file, name))
			return r.device(name, at)
		}
		return r.Object(func(inner string, at int64) error {
			if inner != "lldp" {
				return r.Fail(at, `what lldpcli -f json show neighbors prints is {"lldp": …}`,
					"unknown member %q", inner)
			}
			return r.device(key, at)
		})
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return nil, err
	}
	return r.p, nil
}

// device reads the output of lldpcli on one device.
func (r *lldpReader) device(name string, at int64) error {
	if err := r.p.device(name, unknown); err != nil {
		return r.Fail(at, "", "%v", err)
	}
	from := r.Next()
	var lldp json.RawMessage
	if err := r.Decode(&lldp); err != nil {
		return err
	}
	for _, part := range listed(lldp) {
		var of struct {
			Interface json.RawMessage `json:"interface"`
		}
		if err := json.Unmarshal(part, &of); err != nil {
			return r.Fail(from, `write {"interface": …}`, "lldp is no object")
		}
		for _, one := range listed(of.Interface) {
			for _, x := range named(one) {
				if err := r.neighbour(name, x, from); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// neighbour records the cable from an interface to its neighbour.
func (r *lldpReader) neighbour(device string, x member, from int64) error {
	line := r.line(x.name, from)
	var v struct {
		Chassis, Port json.RawMessage
		Via           json.RawMessage
	}
	if json.Unmarshal(x.value, &v) != nil || v.Chassis == nil || v.Port == nil {
		return fault(r.file, line, 1, "a neighbour has chassis and port", "interface %s names no neighbour",
			termtext.Quote(x.name, 40))
	}
	far, caps := chassis(v.Chassis)
	port, descr, speed := portOf(v.Port)
	if far == "" || port == "" {
		return fault(r.file, line, 1, "the neighbour's lldpd has to announce them",
			"the neighbour of interface %s has no "+
				"name or port", termtext.Quote(x.name, 40))
	}
	role := unknown
	if caps["station"] && !caps["bridge"] && !caps["router"] {
		role = isHost
	}
	if descr != "" && strings.Contains(port, ":") && !strings.Contains(port, "/") { // a port by its address
		port = descr
	}
	if err := r.p.device(far, role); err != nil {
		return fault(r.file, line, 1, "", "%v", err)
	}
	if r.count++; r.count > maxCables {
		return fault(r.file, line, 1, "describe a smaller network", "more than %d neighbours", maxCables)
	}
	r.p.cables = append(r.p.cables, cable{a: end{device, x.name}, b: end{far, port}, gbit: speed, count: 1,
		file: r.file,
		line: line})
	return nil
}

// line returns the line of the first mention of an interface after offset from.
func (r *lldpReader) line(name string, from int64) int {
	at := bytes.Index(r.data[min(int(from), len(r.data)):], []byte(`"`+name+`"`))
	return 1 + bytes.Count(r.data[:min(len(r.data), int(from)+max(at, 0))], []byte("\n"))
}

// listed returns the items of a list, or its only one.
func listed(data json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		return list
	}
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	return []json.RawMessage{data}
}

// member is a name with its JSON value.
type member struct {
	name  string
	value json.RawMessage
}

// named lists values by name: json0's with a member name, json's under keys, in their order.
func named(data json.RawMessage) []member {
	var json0 struct {
		Name json.RawMessage `json:"name"`
	}
	if json.Unmarshal(data, &json0) == nil && json0.Name != nil {
		return []member{{text(json0.Name), data}}
	}
	var out []member
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		var v json.RawMessage
		if err != nil || !ok || d.Decode(&v) != nil {
			return out
		}
		out = append(out, member{key, v})
	}
	return out
}

// text returns a value: "x", {"value": "x"}, or the first of a list of these.
func text(data json.RawMessage) string {
	for range 4 {
		var s string
		if json.Unmarshal(data, &s) == nil {
			return strings.TrimSpace(s)
		}
		var v struct {
			Value json.RawMessage `json:"value"`
		}
		if json.Unmarshal(data, &v) == nil && v.Value != nil {
			data = v.Value
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) != nil || len(list) == 0 {
			return ""
		}
		data = list[0]
	}
	return ""
}

// chassis returns the name of a neighbour and its enabled capabilities (Bridge, Router, …).
func chassis(data json.RawMessage) (name string, caps map[string]bool) {
	caps = map[string]bool{}
	for _, one := range listed(data) {
		var v struct {
			ID, Name, Descr, Capability json.RawMessage
		}
		switch err := json.Unmarshal(one, &v); {
		case err == nil && v.Name != nil:
			name = text(v.Name)
		case err == nil && v.ID != nil:
			name = text(v.ID)
		default: // json: the name is the key
			for _, m := range named(one) {
				name = m.name
				_ = json.Unmarshal(m.value, &v)
			}
		}
		for _, c := range listed(v.Capability) {
			var k struct {
				Type    string
				Enabled bool
			}
			if json.Unmarshal(c, &k) == nil && k.Enabled {
				caps[strings.ToLower(k.Type)] = true
			}
		}
	}
	return name, caps
}

var ethernetRate = regexp.MustCompile(`(?i)\b(\d+)\s*g`)

// portOf returns the id and description of a neighbour's port, and its speed where autonegotiation says one.
func portOf(data json.RawMessage) (id, descr string, gbit float64) {
	for _, one := range listed(data) {
		var v struct {
			ID, Descr json.RawMessage
			Auto      json.RawMessage `json:"auto-negotiation"`
		}
		if json.Unmarshal(one, &v) != nil {
			continue
		}
		id, descr = text(v.ID), text(v.Descr)
		for _, a := range listed(v.Auto) {
			var k struct{ Current json.RawMessage }
			if json.Unmarshal(a, &k) == nil {
				if m := ethernetRate.FindStringSubmatch(text(k.Current)); m != nil {
					gbit, _ = strconv.ParseFloat(m[1], 64)
				}
			}
		}
	}
	return id, descr, gbit
}
