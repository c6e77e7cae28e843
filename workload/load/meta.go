package load

import (
	"io"
	"strings"

	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// MetaInfo is the machine and settings of a run, where its files name them.
type MetaInfo struct {
	GPU   string            // name of the devices
	World int               // ranks
	NCCL  string            // version
	Mode  string            // name of the job
	Env   map[string]string // NCCL_… settings
}

// read reads meta.json: {"mode", "world", "gpu", "nccl": [2, 28, 9], "env": {…}}.
func (m *MetaInfo) read(in io.Reader, file string) error {
	s := jsonscan.New(in, file)
	text := func(to *string) error {
		t, err := s.Text()
		*to = string(t)
		return err
	}
	return s.Object(func(key []byte) error {
		switch string(key) {
		case "mode":
			return text(&m.Mode)
		case "gpu":
			return text(&m.GPU)
		case "world":
			n, err := s.Int()
			m.World = int(min(max(n, 0), 1<<24))
			return err
		case "nccl":
			if s.Peek() != '[' {
				return text(&m.NCCL)
			}
			var parts []string
			err := s.Array(func(int) error {
				t, err := s.Text()
				parts = append(parts, string(t))
				return err
			})
			m.NCCL = strings.Join(parts, ".")
			return err
		case "env":
			m.Env = map[string]string{}
			return s.Object(func(key []byte) error {
				k := string(key)
				t, err := s.Text()
				if strings.HasPrefix(k, "NCCL_") {
					m.Env[k] = string(t)
				}
				return err
			})
		}
		return s.Skip()
	})
}
