package explain

import (
	"errors"
	"fmt"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
)

// Memory is what NCCL would do with the same operation on other buffers.
type Memory struct {
	// Registered says what registering both buffers changes (ncclCommRegister).
	Registered string `json:"registered"`
	// Channels is the bound that it changes, 0 where it changes none.
	Channels int `json:"registeredChannels,omitempty"`
	// Windows says what symmetric windows change (ncclCommWindowRegister).
	Windows string `json:"windows"`
	// Kernel is the symmetric kernel that NCCL takes then, Blocks how many it runs on,
	// TimeUs NCCL's estimate, Times that over the choice's time by the cost model.
	Kernel string  `json:"kernel,omitempty"`
	Blocks int     `json:"blocks,omitempty"`
	TimeUs float32 `json:"kernelUs,omitempty"`
	Times  float64 `json:"kernelTimes,omitempty"`
}

// memory fills in what registration and windows would change. ch is the choice for
// plain buffers, zero for sends and receives.
func (r *Report) memory(c *comm.Comm, o comm.Op, ch tuning.Choice) error {
	if c.Params.Rules.Library == rules.RCCL {
		return nil // what becomes of registered buffers is not known
	}
	m := &Memory{}
	if err := m.registered(c, o, ch); err != nil {
		return err
	}
	if err := m.windows(c, o, ch); err != nil {
		return err
	}
	r.Memory = m
	return nil
}

func (m *Memory) registered(c *comm.Comm, o comm.Op, ch tuning.Choice) error {
	o.Buffers = comm.Registered
	q, choice, err := c.Request(o)
	switch {
	case errors.Is(err, plan.ErrUnsupported):
		m.Registered = "not simulated: " + err.Error()
		return nil
	case err != nil:
		return err
	case choice.Algo != ch.Algo:
		m.Registered, m.Channels = fmt.Sprintf("%v with %v on %d channels", choice.Algo, choice.Proto,
			q.Channels), q.Channels
		return nil
	case !q.Direct:
		m.Registered = "no change"
		return nil
	}
	m.Registered = "peers of the node store into the user's buffers, and nothing is copied out of FIFOs"
	if q.Channels != ch.MaxChannels {
		m.Channels = q.Channels
		m.Registered += fmt.Sprintf("; at most %d channels, not %d", q.Channels, ch.MaxChannels)
	}
	return nil
}

func (m *Memory) windows(c *comm.Comm, o comm.Op, ch tuning.Choice) error {
	o.Buffers = comm.Windows
	s := c.Symmetric()
	l, ok, err := c.SymmetricKernel(o)
	if errors.Is(err, plan.ErrUnsupported) {
		m.Windows = "not simulated: " + err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	if !ok {
		m.Windows = "as registered"
		if have, why := s.Supported(); !have {
			m.Windows += ": " + why
		} else if !o.Func.IsP2P() {
			m.Windows += ": no symmetric kernel does it"
		}
		if w := c.GINWarning(o); w != "" {
			m.Windows += "; " + w
		}
	} else {
		m.Kernel, m.Blocks, m.TimeUs = l.Kernel.String(), l.Channels, l.TimeUs
		m.Windows = fmt.Sprintf("kernel %v on %d blocks", l.Kernel, l.Channels)
		if l.TimeUs > 0 {
			m.Windows += fmt.Sprintf(", %.2f us by NCCL's estimate", l.TimeUs)
		}
		if ch.TimeUs > 0 && l.TimeUs > 0 {
			m.Times = float64(l.TimeUs) / float64(ch.TimeUs)
			m.Windows += fmt.Sprintf(", %.2f times the choice's; NCCL takes it without comparing them",
				m.Times)
		}
	}
	o.CTAPolicy = 2
	if p, ok := c.CopyEngines(o); ok {
		copies := p.Peers
		if p.Own {
			copies++
		}
		m.Windows += fmt.Sprintf("; with NCCL_CTA_POLICY=2 %s a rank by copy engines, on no SM",
			copiesOf(copies))
	}
	return nil
}

func (r *Report) memoryText(b *strings.Builder) {
	if r.Memory == nil {
		return
	}
	b.WriteString("\nOther buffers:\n")
	table(b, [][]string{{"registered (-R 1)", r.Memory.Registered}, {"symmetric windows (-R 2)",
		r.Memory.Windows}}, "ll")
}

func copiesOf(n int) string {
	if n == 1 {
		return "1 copy"
	}
	return fmt.Sprintf("%d copies", n)
}
