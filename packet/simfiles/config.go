package simfiles

import (
	"fmt"

	"github.com/simccl/simccl/packet"
)

// settings are the keys of a configuration that have an effect, with third.cc's defaults.
type settings struct {
	topology, flows                   word
	qcn, varWin, hasWin, globalT      bool
	clamp, fastReact, multiRate       bool
	sample, bound, ackHigh, backTo0   bool
	mode, payload, chunk, ackInterval int64
	fast, miThresh, intMulti, buffer  int64
	shift, headroom                   int64
	stop, alpha, decrease, timer      float64
	gain, loss, target                float64
	ai, hai, least, dctcp             int64
	kmin, kmax                        map[int64]int64
	pmax                              map[int64]float64
	down                              [3]int64 // LINK_DOWN: us after 2 s, two nodes
	downAt                            [2]word
	at                                map[string]word // position of each key's value
	ignored                           []string
}

// pintMode is the CC_MODE of HPCC-PINT, which is refused.
const pintMode = 10

// mostBuffer is the largest BUFFER_SIZE in MB: ns-3 has bytes in 32 bits.
const mostBuffer = 4095

func defaults() *settings {
	return &settings{at: map[string]word{}, qcn: true, hasWin: true, globalT: true, fastReact: true,
		multiRate: true, bound: true, mode: 1, payload: 1000, fast: 5, miThresh: 5,
		intMulti: 1, buffer: 16, shift: 3, headroom: 3, stop: 3.01, alpha: 55, decrease: 4, target: 0.95,
		least: 100e6, dctcp: 1000e6,
		kmin: map[int64]int64{}, kmax: map[int64]int64{}, pmax: map[int64]float64{}}
}

// keys maps each known key to its reader; skip reads a key without effect.
var keys = map[string]func(s *settings, t *wordList, key string) error{
	"ENABLE_QCN":             flag(func(s *settings) *bool { return &s.qcn }),
	"CLAMP_TARGET_RATE":      flag(func(s *settings) *bool { return &s.clamp }),
	"HAS_WIN":                flag(func(s *settings) *bool { return &s.hasWin }),
	"GLOBAL_T":               globalT,
	"VAR_WIN":                flag(func(s *settings) *bool { return &s.varWin }),
	"FAST_REACT":             flag(func(s *settings) *bool { return &s.fastReact }),
	"MULTI_RATE":             flag(func(s *settings) *bool { return &s.multiRate }),
	"SAMPLE_FEEDBACK":        flag(func(s *settings) *bool { return &s.sample }),
	"RATE_BOUND":             flag(func(s *settings) *bool { return &s.bound }),
	"ACK_HIGH_PRIO":          flag(func(s *settings) *bool { return &s.ackHigh }),
	"L2_BACK_TO_ZERO":        flag(func(s *settings) *bool { return &s.backTo0 }),
	"CC_MODE":                whole(func(s *settings) *int64 { return &s.mode }, 0, 10),
	"PACKET_PAYLOAD_SIZE":    whole(func(s *settings) *int64 { return &s.payload }, 1, 65000),
	"L2_CHUNK_SIZE":          whole(func(s *settings) *int64 { return &s.chunk }, 0, 1<<31),
	"L2_ACK_INTERVAL":        whole(func(s *settings) *int64 { return &s.ackInterval }, 0, 1<<31),
	"FAST_RECOVERY_TIMES":    whole(func(s *settings) *int64 { return &s.fast }, 0, 1<<30),
	"MI_THRESH":              whole(func(s *settings) *int64 { return &s.miThresh }, 0, 1<<30),
	"INT_MULTI":              whole(func(s *settings) *int64 { return &s.intMulti }, 1, 1<<20),
	"BUFFER_SIZE":            whole(func(s *settings) *int64 { return &s.buffer }, 1, mostBuffer),
	"PFC_SHIFT":              whole(func(s *settings) *int64 { return &s.shift }, 0, 31),
	"HEADROOM_MULT":          whole(func(s *settings) *int64 { return &s.headroom }, 0, 1000),
	"SIMULATOR_STOP_TIME":    real(func(s *settings) *float64 { return &s.stop }, 0, 1e6),
	"ALPHA_RESUME_INTERVAL":  real(func(s *settings) *float64 { return &s.alpha }, 1, 1e9),
	"RATE_DECREASE_INTERVAL": real(func(s *settings) *float64 { return &s.decrease }, 1, 1e9),
	"RP_TIMER":               real(func(s *settings) *float64 { return &s.timer }, 1, 1e9),
	"EWMA_GAIN":              real(func(s *settings) *float64 { return &s.gain }, 0, 1),
	"ERROR_RATE_PER_LINK":    real(func(s *settings) *float64 { return &s.loss }, 0, 1),
	"U_TARGET":               real(func(s *settings) *float64 { return &s.target }, 0.01, 10),
	"RATE_AI":                rate(func(s *settings) *int64 { return &s.ai }),
	"RATE_HAI":               rate(func(s *settings) *int64 { return &s.hai }),
	"MIN_RATE":               rate(func(s *settings) *int64 { return &s.least }),
	"DCTCP_RATE_AI":          rate(func(s *settings) *int64 { return &s.dctcp }),
	"TOPOLOGY_FILE":          file(func(s *settings) *word { return &s.topology }),
	"FLOW_FILE":              file(func(s *settings) *word { return &s.flows }),
	"KMIN_MAP":               thresholds(func(s *settings) map[int64]int64 { return s.kmin }),
	"KMAX_MAP":               thresholds(func(s *settings) map[int64]int64 { return s.kmax }),
	"PMAX_MAP":               probabilities,
	"LINK_DOWN":              linkDown,
	"TRACE_FILE":             skip(1), "TRACE_OUTPUT_FILE": skip(1), "FCT_OUTPUT_FILE": skip(1),
	"PFC_OUTPUT_FILE": skip(1), "QLEN_MON_FILE": skip(1),
	"QLEN_MON_START": skip(1), "PINT_LOG_BASE": skip(1), "PINT_PROB": skip(1), "QLEN_MON_END": skip(1),
	"ENABLE_TRACE": skip(1), "USE_DYNAMIC_PFC_THRESHOLD": skip(1), "PAUSE_TIME": skip(1),
	"DATA_RATE": skip(1), "LINK_DELAY": skip(1), "FLOW_DEP": skip(1), "REF_TS": skip(4),
}

func flag(at func(*settings) *bool) func(*settings, *wordList, string) error {
	return func(s *settings, t *wordList, key string) error {
		v, err := t.Integer(key, 0, 1<<31)
		*at(s) = v != 0
		return err
	}
}

// globalT reads GLOBAL_T: only 1 gives all flows the longest round trip (scratch/third.cc,
// ScheduleFlowInputs).
func globalT(s *settings, t *wordList, key string) error {
	v, err := t.Integer(key, 0, 1<<31)
	s.globalT = v == 1
	return err
}

func whole(at func(*settings) *int64, low, high int64) func(*settings, *wordList, string) error {
	return func(s *settings, t *wordList, key string) (err error) {
		*at(s), err = t.Integer(key, low, high)
		return err
	}
}

func real(at func(*settings) *float64, low, high float64) func(*settings, *wordList, string) error {
	return func(s *settings, t *wordList, key string) (err error) {
		*at(s), err = t.Number(key, low, high)
		return err
	}
}

func rate(at func(*settings) *int64) func(*settings, *wordList, string) error {
	return func(s *settings, t *wordList, key string) (err error) {
		*at(s), err = takeRate(t, key)
		return err
	}
}

func file(at func(*settings) *word) func(*settings, *wordList, string) error {
	return func(s *settings, t *wordList, key string) (err error) {
		*at(s), err = t.Take("the file of " + key)
		return err
	}
}

func skip(n int) func(*settings, *wordList, string) error {
	return func(_ *settings, t *wordList, key string) error {
		for range n {
			if _, err := t.Take("the value of " + key); err != nil {
				return err
			}
		}
		return nil
	}
}

// pairs reads a count, then as many pairs of a rate in bit/s and a value.
func pairs(t *wordList, key string, value func(bps int64) error) error {
	n, err := t.Integer("the number of pairs of "+key, 0, 1000)
	for ; err == nil && n > 0; n-- {
		var bps int64
		if bps, err = t.Integer("a rate of "+key+" in bit/s", 1, 1e15); err == nil {
			err = value(bps)
		}
	}
	return err
}

func thresholds(of func(*settings) map[int64]int64) func(*settings, *wordList, string) error {
	return func(s *settings, t *wordList, key string) error {
		return pairs(t, key, func(bps int64) (err error) {
			of(s)[bps], err = t.Integer("a threshold of "+key+" in kB", 0, 4e6)
			return err
		})
	}
}

func probabilities(s *settings, t *wordList, key string) error {
	return pairs(t, key, func(bps int64) (err error) {
		s.pmax[bps], err = t.Number("a probability of "+key, 0, 1)
		return err
	})
}

func linkDown(s *settings, t *wordList, key string) (err error) {
	high := int64(1 << 40)
	for i, what := range [3]string{"the time of ", "the first node of ", "the second node of "} {
		if i > 0 {
			s.downAt[i-1], high = t.Peek(), most-1
		}
		if s.down[i], err = t.Integer(what+key, 0, high); err != nil {
			return err
		}
	}
	return nil
}

func readConfig(name string, data []byte) (*settings, error) {
	s, t := defaults(), splitWords(name, data)
	for !t.Done() {
		w, err := t.Take("a key")
		if err != nil {
			return nil, err
		}
		read, known := keys[w.Text]
		if !known { // unknown keys are ignored, as in the simulator; the caller reports them
			s.ignored = append(s.ignored, fmt.Sprintf("%s:%d:%d", name, w.Line, w.Col))
			continue
		}
		s.at[w.Text] = t.Peek()
		if err := read(s, t, w.Text); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		w   word
		key string
	}{{s.topology, "TOPOLOGY_FILE"}, {s.flows, "FLOW_FILE"}} {
		if f.w.Text == "" {
			return nil, t.Fail(t.End, "no %s: name one", f.key)
		}
	}
	return s, s.consistent(t)
}

// consistent refuses settings with which ns-3 would crash or hang (a division by a chunk of 0, a timer
// without a period, flows that never end), and a go-back-0 position within a frame.
func (s *settings) consistent(t *wordList) error {
	place := func(key string) word {
		if w, ok := s.at[key]; ok {
			return w
		}
		return t.End
	}
	switch chunk := place("L2_CHUNK_SIZE"); {
	case s.mode == pintMode:
		w := place("CC_MODE")
		return fmt.Errorf("%s:%d:%d: %w: write 3 for HPCC with records of each hop, 1 for DCQCN, 7 for "+
			"TIMELY or 8 for DCTCP",
			t.Name, w.Line, w.Col, &packet.UnsupportedError{What: "HPCC-PINT", Found: fmt.Sprint("CC_MODE ",
				s.mode)})
	case s.ackInterval == 0:
		return t.Fail(place("L2_ACK_INTERVAL"),
			"L2_ACK_INTERVAL 0 sends no acknowledgements, and no flow would end: write 1 for one a packet")
	case s.chunk == 0 && s.ackInterval > s.payload:
		return t.Fail(chunk, "L2_CHUNK_SIZE 0 with L2_ACK_INTERVAL %d: before so many bytes, multiples of "+
			"the chunk are acknowledged: write a chunk, or L2_ACK_INTERVAL 1", s.ackInterval)
	case s.backTo0 && (s.chunk == 0 || s.chunk%s.payload != 0):
		return t.Fail(chunk,
			"L2_BACK_TO_ZERO with L2_CHUNK_SIZE %d: write a multiple of PACKET_PAYLOAD_SIZE, %d", s.chunk,
			s.payload)
	case s.mode == 1 && micros(s.timer) == 0:
		return t.Fail(place("RP_TIMER"),
			"no RP_TIMER: with CC_MODE 1 rates rise at each of its periods: write one in us")
	}
	return nil
}
