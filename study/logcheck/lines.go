package logcheck

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/ncclog"
)

// sectionOf names the section of a line that ncclog prints.
func sectionOf(line string) string {
	switch {
	case strings.HasPrefix(line, "Pattern "), graphRow(line):
		return "graphs"
	case strings.HasPrefix(line, "NVLS tuning"):
		return "channels"
	case strings.HasPrefix(line, "Tree "), strings.HasPrefix(line, "Trees ["),
		strings.HasPrefix(line, "NVLS "):
		return "trees"
	case strings.HasPrefix(line, "Channel "), strings.HasPrefix(line, "Ring "):
		return "rings"
	case strings.HasPrefix(line, "P2P Chunksize"), strings.HasPrefix(line, "ncclP2pSchedule"),
		strings.HasSuffix(line, "per peer"):
		return "channels"
	case strings.HasPrefix(line, "  Algorithm"), strings.HasPrefix(line, "  Protocol"),
		strings.HasPrefix(line, " Max NThreads"),
		strings.HasPrefix(line, "threadThresholds"), tableRow(line):
		return "table"
	}
	return "system"
}

// graphRow: " 0 : NET/0-0 GPU/0-60 …".
func graphRow(line string) bool {
	head, rest, ok := strings.Cut(line, " : ")
	return ok && strings.Trim(head, " 0123456789") == "" && (strings.HasPrefix(rest, "GPU/") ||
		strings.HasPrefix(rest, "NET/"))
}

// tableRow: "    AllReduce |     9.0/   3.0 |…".
func tableRow(line string) bool {
	head, _, ok := strings.Cut(line, " |")
	if !ok {
		return false
	}
	_, err := coll.ParseFunc(strings.TrimSpace(head))
	return err == nil
}

// compare adds the comparison of one communicator to the report.
func (rep *Report) compare(c *ncclog.Communicator, site *scenario.Site) {
	for _, r := range c.Ranks {
		if r.Rank >= site.Comm.NRanks {
			continue
		}
		ours := map[string][]string{}
		for _, l := range visible(ncclog.OfRank(site.Comm, int32(r.Rank)), r.Lines) {
			name := sectionOf(l.Text)
			ours[name] = append(ours[name], l.Text)
		}
		logged := map[string][]ncclog.Text{}
		for _, l := range r.Lines {
			name := sectionOf(l.Text)
			logged[name] = append(logged[name], l)
		}
		if lines, n := once(logged["system"]); n > 0 {
			logged["system"] = lines
			rep.note("rank %d lists NETs without a PCI device once for each process; they are compared once",
				r.Rank)
		}
		for _, n := range Names {
			if len(logged[n.Name]) > 0 || len(ours[n.Name]) > 0 {
				rep.lines(r, n.Name, n.Rule, logged[n.Name], ours[n.Name])
			}
		}
		rep.routes(site.Comm, r)
		rep.choices(site.Comm, c, r)
	}
}

// visible removes lines of subsystems that NCCL_DEBUG_SUBSYS excluded from the log: those without any line in
// it.
func visible(ours []ncclog.Line, logged []ncclog.Text) []ncclog.Line {
	of := map[string]ncclog.Subsystem{}
	for _, l := range ours {
		of[kind(l.Text)] = l.Sub
	}
	shown := map[ncclog.Subsystem]bool{}
	for _, l := range logged {
		if sub, ok := of[kind(l.Text)]; ok {
			shown[sub] = true
		}
	}
	var out []ncclog.Line
	for _, l := range ours {
		if shown[l.Sub] {
			out = append(out, l)
		}
	}
	return out
}

// kind returns the section and first word of a line, without numbers.
func kind(line string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return sectionOf(line) + " " + strings.TrimRight(word, "0123456789abcdef-/")
}

// lines compares a rank's lines of one section with simccl's lines of the same key. Only a line with other
// content is a difference: lines missing in the log are counted, and lines damaged by concurrent output are
// left out.
func (rep *Report) lines(r *ncclog.Rank, name, rule string, logged []ncclog.Text, ours []string) {
	s := rep.Sections[name]
	for _, m := range align(logged, ours) {
		switch {
		case m.theirs < 0:
			rep.absent[r.Rank]++
			continue
		case m.ours >= 0 && logged[m.theirs].Text == ours[m.ours]:
			s.Compared++
			s.Equal++
			continue
		case rep.torn(&logged[m.theirs], ours):
			rep.left++
			if m.ours >= 0 {
				rep.absent[r.Rank]++
			}
			continue
		}
		s.Compared++
		l := &logged[m.theirs]
		if m.ours < 0 {
			s.differs("%s:%d: rank %d: %s prints %q, simccl nothing (%s)", l.File, l.Line, r.Rank,
				rep.library,
				l.Text, rule)
		} else {
			s.differs("%s:%d: rank %d: %s %q, simccl %q (%s)", l.File, l.Line, r.Rank, rep.library, l.Text,
				ours[m.ours],
				rule)
		}
	}
}

// nearby is the number of following lines in which the rest of an interrupted line is searched.
const nearby = 16

// torn reports whether concurrent output has damaged a line: it contains another process's prefix, or it
// begins like one of simccl's lines and one of the next lines is the rest of that.
func (rep *Report) torn(l *ncclog.Text, ours []string) bool {
	if l.Torn {
		return true
	}
	for _, o := range ours {
		n := 0
		for n < min(len(o), len(l.Text)) && o[n] == l.Text[n] {
			n++
		}
		rest := strings.TrimSpace(o[n:])
		if n == 0 || rest == "" {
			continue
		}
		for _, p := range rep.pieces[rest] {
			if p.File == l.File && p.Line > l.Line && p.Line <= l.Line+nearby {
				return true
			}
		}
	}
	return false
}

func (s *Section) differs(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.First = cmp.Or(s.First, text)
	if len(s.Differences) < maxDifferences {
		s.Differences = append(s.Differences, text)
	}
}

// routes compares the transports of the connections that a rank logged.
func (rep *Report) routes(c *comm.Comm, r *ncclog.Rank) {
	s := rep.Sections["routes"]
	for i := range r.Routes {
		l := &r.Routes[i]
		want, ok := transports[l.Via]
		if !ok || int(l.Src) >= c.NRanks || int(l.Dst) >= c.NRanks || l.Channel >= len(c.Channels) &&
			l.Conn == 0 {
			continue
		}
		s.Compared++
		kind := connect.TreeRoute
		switch {
		case l.Conn == 1:
			kind = connect.P2PRoute
		case c.Channels[l.Channel].Ring[l.Src].Next == l.Dst:
			kind = connect.RingRoute
		}
		route := c.RouteOf(l.Src, l.Dst, l.Channel, kind)
		if problem := routeDiffers(l, &route, want); problem != "" {
			s.differs("%s:%d: channel %d, %d to %d: %s by %s, simccl %s (transport.cc, graph/paths.cc)",
				l.File, l.Line, l.Channel, l.Src, l.Dst, rep.library, l.Via, problem)
			continue
		}
		s.Equal++
	}
}

var transports = map[string]connect.Transport{"P2P": connect.P2P, "SHM": connect.SHM, "NET": connect.NET}

func routeDiffers(l *ncclog.Route, r *connect.Route, want connect.Transport) string {
	if r.Transport != want {
		for name, t := range transports {
			if t == r.Transport {
				return "by " + name
			}
		}
		return "by another transport"
	}
	if want != connect.NET || l.Net < 0 {
		return ""
	}
	net, gdr := r.SrcNet, r.SrcGDR
	if l.Receive {
		net, gdr = r.DstNet, r.DstGDR
	}
	switch {
	case int(net) != l.Net:
		return fmt.Sprintf("by NET %d, not %d", net, l.Net)
	case gdr != l.GDR:
		return fmt.Sprintf("with GPU Direct RDMA %v, not %v", gdr, l.GDR)
	}
	return ""
}

// choices compares NCCL's choices for operations that were not grouped.
func (rep *Report) choices(c *comm.Comm, of *ncclog.Communicator, r *ncclog.Rank) {
	s := rep.Sections["choices"]
	known := map[string]string{}
	var runs []span
	grouped, unnamed := 0, 0
	for i := range r.Ops {
		op := &r.Ops[i]
		if op.Grouped {
			grouped++
			continue
		}
		if op.Func == "" {
			unnamed++
			continue
		}
		key := fmt.Sprint(op.Text.Text, op.Type, op.RedOp, op.Root)
		ours, ok := known[key]
		if !ok {
			var err error
			if ours, err = choose(c, op); err != nil {
				ours = err.Error()
			}
			known[key] = ours
		}
		s.Compared++
		if ours == op.Text.Text {
			s.Equal++
		}
		runs = extend(runs, op, ours)
	}
	if grouped > 0 {
		rep.note("communicator %s: %d choices of grouped calls are not compared", of.ID, grouped)
	}
	if unnamed > 0 {
		rep.note("communicator %s: %d choices are not compared, since NCCL before 2.23.4 does not name "+
			"their operation; log the calls with NCCL_DEBUG_SUBSYS=COLL too", of.ID, unnamed)
	}
	for _, run := range runs {
		if run.differs() {
			s.differs("%s (graph/tuning.cc, enqueue.cc)", run.text(rep.library))
		}
	}
}

// choose returns the line that simccl would log for an operation. If the log lacks its call, the type is
// float32 and the reduction sum, as in nccl-tests.
func choose(c *comm.Comm, op *ncclog.Choice) (string, error) {
	f, err := coll.ParseFunc(op.Func)
	if err != nil {
		return "", err
	}
	o := comm.Op{Func: f, Type: coll.Float32, RedOp: coll.Sum}
	if op.Called && op.Type < len(coll.DataTypes()) {
		o.Type, o.Root = coll.DataType(op.Type), int32(op.Root)
		if op.RedOp < len(coll.RedOps()) {
			o.RedOp = coll.RedOp(op.RedOp)
		}
	}
	o.Count = op.Bytes / int64(o.Type.Size())
	if c.Rules.Log.OpTime && (f == coll.AllGather || f == coll.ReduceScatter) {
		o.Count /= int64(c.NRanks) // the bytes of all ranks (2.23.4 enqueue.cc:72)
	}
	req, choice, err := c.Request(o)
	if err != nil {
		return "", err
	}
	req.Way = "" // what RCCL does in place of an algorithm has no such line
	split, err := build.Split(c.Layout, req)
	if err != nil {
		return "", err
	}
	return ncclog.OfOp(c.Rules, req, &choice, split).Text, nil
}
