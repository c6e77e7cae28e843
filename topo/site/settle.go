package site

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/termtext"
)

// Words in device names that identify switches and hosts.
var (
	switchWords = regexp.MustCompile(
		`(?i)(^|[^a-z])(leaf|spine|core|agg|tor|switch|sw|ssw|csw|fsw|rsw)([^a-z]|$)`)
	hostWords = regexp.MustCompile(
		`(?i)(^|[^a-z])(node|host|server|srv|gpu|dgx|hgx|worker|compute|cn|n)([^a-z]|$)`)
)

// settle classifies the devices, merges cables that both ends report, and returns an error for an impossible
// network.
func (p *Plan) settle(o Options) error {
	if err := p.mergeCables(); err != nil {
		return err
	}
	if len(p.cables) == 0 {
		return fault(p.file(), 1, 1, "give the file of the whole network", "no cable is described here")
	}
	if err := p.classify(o.Hosts); err != nil {
		return err
	}
	hosts := 0
	for _, d := range p.order {
		if p.roles[d] == isHost {
			hosts++
		}
	}
	if hosts == 0 {
		return fault(p.file(), 1, 1,
			"give the files of hosts too, or say which they are: --host-names 'gpu*'",
			"no host is described here")
	}
	for i := range p.cables {
		c := &p.cables[i]
		if p.roles[c.a.device] == isHost && p.roles[c.b.device] == isHost {
			return fault(c.file, c.line, 1, "say which devices are hosts: --host-names 'gpu*'",
				"a cable from %s to %s, both taken for hosts", termtext.Short(c.a.device, 0),
				termtext.Short(c.b.device, 0))
		}
	}
	return nil
}

func (p *Plan) file() string {
	if len(p.files) == 0 {
		return "network"
	}
	return p.files[0]
}

// mergeCables merges the two reports of a cable, one from each end, and returns an error for a port with two
// cables.
func (p *Plan) mergeCables() error {
	type far struct {
		end
		at int
	}
	at := map[end]far{}
	out := p.cables[:0]
	for _, c := range p.cables {
		x, y := at[c.a], at[c.b]
		if c.a.port != "" && c.b.port != "" && x.end == c.b && y.end == c.a {
			if d := &out[x.at]; d.gbit == 0 {
				d.gbit = c.gbit
			} else if c.gbit != 0 && c.gbit != d.gbit {
				p.assume("%s and %s give the cable of %s port %s another speed; the first is taken, %g "+
					"Gbit/s",
					place(d), place(&c), termtext.Short(c.a.device, 0), termtext.Short(c.a.port, 0), d.gbit)
			}
			continue
		}
		for _, e := range []end{c.a, c.b} {
			if old, ok := at[e]; ok && e.port != "" {
				was := &out[old.at]
				return fault(c.file, c.line, 1, "a port has one cable; "+place(was)+" has it already",
					"port %s of %s leads to %s here and to %s there", termtext.Quote(e.port, 0),
					termtext.Short(e.device, 0), other(&c, e), other(was, e))
			}
		}
		if c.a == c.b {
			return fault(c.file, c.line, 1, "", "a cable from %s to itself", termtext.Short(c.a.device, 0))
		}
		at[c.a], at[c.b] = far{c.b, len(out)}, far{c.a, len(out)}
		out = append(out, c)
	}
	p.cables = out
	return nil
}

func place(c *cable) string { return fmt.Sprintf("%s:%d", c.file, c.line) }

func other(c *cable, e end) string {
	o := c.b
	if c.b == e {
		o = c.a
	}
	return strings.TrimSpace(termtext.Short(o.device, 0) + " " + termtext.Short(o.port, 0))
}

// classify assigns roles to devices without one: by the pattern of host names, by words in names, else
// devices that appear only in the first column are hosts.
func (p *Plan) classify(pattern string) error {
	if pattern != "" {
		for _, d := range p.order {
			ok, err := path.Match(pattern, d)
			switch {
			case err != nil:
				return fail.Usage("--host-names %s: %v", pattern, err)
			case ok:
				p.roles[d] = isHost
			default:
				p.roles[d] = isSwitch
			}
		}
		return nil
	}
	first, second := map[string]bool{}, map[string]bool{}
	for i := range p.cables {
		first[p.cables[i].a.device], second[p.cables[i].b.device] = true, true
	}
	var guessed []string
	for _, d := range p.order {
		if p.roles[d] != unknown {
			continue
		}
		switch word := switchWords.MatchString(d); {
		case word:
			p.roles[d] = isSwitch
		case hostWords.MatchString(d), first[d] && !second[d]:
			p.roles[d] = isHost
			guessed = append(guessed, d)
		default:
			p.roles[d] = isSwitch
		}
	}
	if n := len(guessed); n > 0 {
		p.assume("%d devices are taken for hosts, %s to %s, by their names and the column that they are in "+
			"(--host-names)", n, guessed[0], guessed[n-1])
	}
	return nil
}
