package torch

import (
	"bytes"

	"github.com/simccl/simccl/workload/internal/jsonscan"
)

func clamp(n int64) int32 { return int32(min(max(n, -1<<31), 1<<31-1)) }

// ParseGroups parses the members of groups from text such as [{"pg_name": "0", "ranks": [0, 1]}] or {"0": [0,
// 1]}, also in quotes. Of truncated text it takes the complete groups.
func ParseGroups(text []byte, groups map[string][]int32) {
	s := jsonscan.New(bytes.NewReader(text), "groups")
	one := func() error {
		name, ranks := "", []int32(nil)
		err := s.Object(func(key []byte) error {
			switch string(key) {
			case "pg_name":
				t, err := s.Text()
				name = string(t)
				return err
			case "ranks":
				list, _, err := s.Ints()
				for _, r := range list {
					ranks = append(ranks, clamp(r))
				}
				return err
			}
			return s.Skip()
		})
		if err == nil && name != "" {
			groups[name] = ranks
		}
		return err
	}
	switch s.Peek() {
	case '"':
		inner, err := s.String()
		if err == nil && len(inner) < len(text) {
			ParseGroups(append([]byte(nil), inner...), groups)
		}
	case '[':
		_ = s.Array(func(int) error { return one() })
	case '{':
		_ = s.Object(func(key []byte) error {
			name := string(key)
			list, _, err := s.Ints()
			if err != nil {
				return err
			}
			ranks := make([]int32, len(list))
			for i, r := range list {
				ranks[i] = clamp(r)
			}
			groups[name] = ranks
			return nil
		})
	}
}
