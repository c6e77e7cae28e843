package collector

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/ruletest"
)

// TestConversations: messages of programs in, matches and refusals out.
//
//	programs         four processes of a rank each: communicator 0 of all, 1 of ranks 0 and 1
//	ask              the requests below, in order: what is refused, and who waits
//	ends             when events happened, by rank, ps; "?" where their stream still waits
//	warned           what the user is warned of
//
// A request is of a rank: "0 call COMM OP COUNT [stream=N] [type=N] [op=N] [root=R]", with more of a group
// behind a semicolon; "0 mark [stream=N]" records an event, "0 behind N [stream=N]" lets a stream wait for
// the rank's N-th one, "0 sync [stream=N]" waits, "0 leave COMM" and "0 thinks PS". A call takes as many
// ps as it has elements, and its launch 100.
func TestConversations(t *testing.T) {
	ruletest.Run(t, func() func(*testing.T, *datadriven.TestData) string {
		l := &listener{}
		return func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "programs":
				l.c = New(context.Background(), Settings{Clock: Virtual, Devices: Pretend, GPUs: 4,
					Prices: byCount{},
					Warn:   func(text string) { l.warned += text + "\n" }})
				l.programs, l.warned = begin(t, l.c), ""
				return "ok"
			case "ask":
				return l.ask(t, d)
			case "ends":
				return l.ends()
			case "warned":
				return l.warned
			}
			d.Fatalf(t, "%s: no command %s", d.Pos, d.Cmd)
			return ""
		}
	})
}

// listener is a collector with its programs.
type listener struct {
	c        *Core
	programs []*program
	warned   string
}

func (l *listener) ask(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	for line := range strings.Lines(d.Input) {
		line = strings.TrimSpace(line)
		who, what, _ := strings.Cut(line, " ")
		rank, err := strconv.Atoi(who)
		if err != nil || rank >= len(l.programs) {
			d.Fatalf(t, "%s: %s: no rank", d.Pos, line)
		}
		p := l.programs[rank]
		q, err := requestOf(int64(rank), what, len(p.marks))
		if err != nil {
			d.Fatalf(t, "%s: %s: %v", d.Pos, line, err)
		}
		if p.waits != nil {
			fmt.Fprintf(&b, "%s: it still waits\n", line)
			continue
		}
		p.todo = append(p.todo, q)
		switch r, _ := p.step(l.c); {
		case r.status != 0:
			fmt.Fprintf(&b, "%s: refused, %d: %s\n", line, r.status, r.text)
		case p.waits != nil:
			fmt.Fprintf(&b, "%s: waits\n", line)
		}
	}
	for rank, p := range l.programs {
		if r, ok := p.step(l.c); ok && r.status != 0 {
			fmt.Fprintf(&b, "%d: refused, %d: %s\n", rank, r.status, r.text)
		} else if ok {
			fmt.Fprintf(&b, "%d goes on\n", rank)
		}
	}
	return b.String()
}

func requestOf(rank int64, text string, marks int) (q request, err error) {
	var ops [][]byte
	for i, one := range strings.Split(text, ";") {
		words := map[string]int64{"stream": 1, "type": 0, "op": 0, "root": 0}
		var plain []string
		for _, w := range strings.Fields(one) {
			if k, v, ok := strings.Cut(w, "="); ok {
				if words[k], err = strconv.ParseInt(v, 10, 64); err != nil {
					return q, err
				}
			} else {
				plain = append(plain, w)
			}
		}
		number := func(i int) int64 {
			if i < len(plain) {
				n, _ := strconv.ParseInt(plain[i], 10, 64)
				return n
			}
			return 0
		}
		stream := apart | words["stream"]
		switch verb := plain[0]; {
		case i > 0 || verb == "call":
			at := max(0, 1-i) // the word after "call"
			f, ok := map[string]coll.Func{"send": coll.Send, "recv": coll.Recv}[plain[at+1]]
			if !ok {
				if f, err = coll.ParseFunc(plain[at+1]); err != nil {
					return q, err
				}
			}
			op := sent(uint64(handle(number(at), rank)), uint64(stream), f, uint64(number(at+2)),
				int32(words["root"]))
			binary.LittleEndian.PutUint16(op[66:], uint16(words["type"]))
			binary.LittleEndian.PutUint32(op[68:], uint32(words["op"]))
			ops = append(ops, op)
		case verb == "mark":
			return request{kind: reqEventRecord, a: [6]int64{0, stream, int64(marks)}}, nil
		case verb == "behind":
			return request{kind: reqEventWait, a: [6]int64{0, stream, number(1)}}, nil
		case verb == "sync":
			return request{kind: reqSync, a: [6]int64{0, stream}}, nil
		case verb == "leave":
			return request{kind: reqLeave, a: [6]int64{handle(number(1), rank)}}, nil
		case verb == "thinks":
			return request{kind: reqQuery, now: number(1), a: [6]int64{0, stream}}, nil
		default:
			return q, fmt.Errorf("no request %s", verb)
		}
	}
	return request{kind: reqGroup, a: [6]int64{int64(len(ops))}, payload: bytes.Join(ops, nil)}, nil
}

func (l *listener) ends() string {
	var b strings.Builder
	for rank, p := range l.programs {
		fmt.Fprintf(&b, "%d:", rank)
		for _, e := range p.marks {
			if e.op.Ended {
				fmt.Fprintf(&b, " %d", e.op.End)
			} else {
				b.WriteString(" ?")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
