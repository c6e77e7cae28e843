package export

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// listedMessage is one message of a plan in JSON.
type listedMessage struct {
	ID      int64       `json:"id"`
	From    int32       `json:"from"`
	To      int32       `json:"to"`
	Channel int32       `json:"channel"`
	Bytes   units.Bytes `json:"bytes"`
	Chunk   int32       `json:"chunk"`
	Deps    []int64     `json:"deps"` // messages whose data it forwards
	Prev    int64       `json:"prev"` // previous message of the same program; -1: none
}

// WriteMessages writes the messages of a plan as one JSON document, one per line, as they are made: there may
// be millions.
func WriteMessages(w io.Writer, p *plan.Plan) error {
	if err := p.Distinct(); err != nil {
		return err
	}
	head, err := json.Marshal(map[string]any{"op": p.Req.Func.TestName(), "count": p.Req.Count,
		"type": p.Req.Type.TestName(), "ranks": p.Comm.NRanks,
		"algo": p.Req.Algo.String(), "proto": p.Req.Proto.String(), "channels": p.Split.NChannels})
	if err != nil {
		return err
	}
	comma := ""
	if _, err := fmt.Fprintf(w, "{\"plan\":%s,\n\"messages\":[", head); err != nil {
		return err
	}
	err = EachFlow(p, func(f *Flow) error {
		line, err := json.Marshal(listedMessage{f.ID, f.Conn.Src, f.Conn.Dst, f.Conn.Channel, f.Bytes,
			f.Chunk, append([]int64{}, f.Deps...), f.Prev})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n%s", comma, line)
		comma = ","
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(w, "\n]}\n")
	return err
}
