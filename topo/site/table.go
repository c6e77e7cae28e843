package site

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
)

// columns are the headings that a table of cables may have, without case, blanks, dots and underscores.
var columns = map[string][]string{
	"a": {"a", "adevice", "devicea", "source", "sourcedevice", "src", "srcdevice", "from", "fromdevice",
		"host", "hostname",
		"node", "server", "local", "localdevice", "device1", "enda", "sidea"},
	"aport": {"aport", "porta", "sourceport", "srcport", "fromport", "hostport", "nodeport", "serverport",
		"nic",
		"interface", "localport", "port1", "ainterface", "sourceinterface", "localinterface"},
	"b": {"b", "bdevice", "deviceb", "destination", "destinationdevice", "dest", "destdevice", "dst",
		"dstdevice", "target", "to",
		"todevice", "switch", "switchname", "remote", "remotedevice", "device2", "endb", "sideb", "peer"},
	"bport": {"bport", "portb", "destinationport", "destport", "dstport", "targetport", "toport",
		"switchport",
		"remoteport", "port2", "binterface", "destinationinterface", "remoteinterface", "peerport"},
	"gbit":  {"gbit", "gbps", "gbits", "speed", "rate", "speedgbps", "speedgbit", "bandwidth", "linkspeed"},
	"count": {"count", "cables", "links", "quantity"},
}

// CableColumns reports whether a line is the heading of a table of cables.
func CableColumns(heading string) bool {
	c, err := csv.NewReader(strings.NewReader(heading)).Read()
	if err != nil {
		return false
	}
	at := places(c)
	_, a := at["a"]
	_, b := at["b"]
	return a && b
}

// places returns the column of each recognised heading.
func places(heading []string) map[string]int {
	at := map[string]int{}
	for i, h := range heading {
		word := strings.Map(func(r rune) rune {
			if strings.ContainsRune(" _-./()", r) {
				return -1
			}
			return r
		}, strings.ToLower(h))
		for name, words := range columns { //lint:sorted a heading is one column's
			if _, ok := at[name]; !ok && slices.Contains(words, word) {
				at[name] = i
			}
		}
	}
	return at
}

// Cables reads a table of cables: comma-separated, with a heading that names two devices and, where the table
// has them, their ports, a speed ("400", "400G", "4xNDR") and a count. # begins a comment.
func Cables(data []byte, file string) (*Plan, error) {
	p := newPlan()
	p.files = []string{file}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.TrimLeadingSpace, r.ReuseRecord = '#', true, true
	heading, err := r.Read()
	if err != nil {
		return nil, csvFault(file, err)
	}
	at := places(heading)
	for _, need := range []string{"a", "b"} {
		if _, ok := at[need]; !ok {
			return nil, fault(file, 1, 1, "name the columns a_device,a_port,b_device,b_port,gbit",
				"no column of the %s device "+
					"of a cable", map[string]string{"a": "first", "b": "second"}[need])
		}
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, csvFault(file, err)
		}
		if err := p.row(row, at, r, file); err != nil {
			return nil, err
		}
	}
}

func csvFault(file string, err error) error {
	var e *csv.ParseError
	if errors.As(err, &e) {
		return fault(file, e.Line, e.Column,
			"each line has the columns of the heading; quote what holds a comma", "%v", e.Err)
	}
	return fault(file, 1, 1, "name the columns a_device,a_port,b_device,b_port,gbit", "an empty table")
}

// row records the cable in a row of the table, whose columns are at; errors have line and column.
func (p *Plan) row(row []string, at map[string]int, r *csv.Reader, file string) error {
	cell := func(name string) (string, int, int) {
		i, ok := at[name]
		if !ok {
			i = 0
		}
		line, col := r.FieldPos(i)
		if !ok {
			return "", line, col
		}
		return strings.TrimSpace(row[i]), line, col
	}
	a, line, _ := cell("a")
	b, _, _ := cell("b")
	c := cable{a: end{device: a}, b: end{device: b}, count: 1, file: file, line: line}
	c.a.port, _, _ = cell("aport")
	c.b.port, _, _ = cell("bport")
	for _, name := range []string{"a", "b"} {
		text, line, col := cell(name)
		if err := p.device(text, unknown); err != nil {
			return fault(file, line, col, "write the device's name", "%v", err)
		}
	}
	if text, line, col := cell("gbit"); text != "" {
		var ok bool
		if c.gbit, ok = rate(text); !ok {
			return fault(file, line, col, "write 400, 400G or 4xNDR", "speed %s", termtext.Quote(text, 40))
		}
	}
	if text, line, col := cell("count"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1<<16 {
			return fault(file, line, col, "write a number from 1", "count %s", termtext.Quote(text, 40))
		}
		c.count = n
	}
	if c.a.port == "" { // ports in the order of lines
		c.a.port = p.next(a)
	}
	if len(p.cables) == maxCables {
		return fault(file, line, 1, "describe a smaller network", "more than %d cables", maxCables)
	}
	p.cables = append(p.cables, c)
	return nil
}

// next numbers the ports of a device whose table names none.
func (p *Plan) next(device string) string {
	n := p.ports["\x00"+device]
	p.ports["\x00"+device] = n + 1
	return "port" + strconv.Itoa(n)
}

var plainRate = regexp.MustCompile(`(?i)^(\d+(?:\.\d+)?)\s*(g|gb|gbe|gbit|gbps|gb/s|gbit/s)?$`)

// rate parses a speed in Gbit/s, also InfiniBand's notation such as 4xNDR.
func rate(text string) (float64, bool) {
	if m := ibRate.FindStringSubmatch(text); m != nil {
		width, _ := strconv.Atoi(m[1])
		return float64(width) * laneGbit[m[2]], true
	}
	m := plainRate.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(m[1], 64)
	return v, err == nil && v > 0 && v <= 1e6
}
