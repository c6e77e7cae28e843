package overlap

import "strings"

// builtin are the built-in machines of GPUs by a word of their names.
var builtin = []struct{ word, machine string }{{"H200", "dgx-h200"}, {"H100", "dgx-h100"}, {"A100", "dgx-a100"}, {"B200", "dgx-b200"}, {"V100", "dgx-2"}}

// Machine is the built-in machine of a table's GPUs: dgx-h100 where it names none
// that is known.
func Machine(device string, world int) string {
	for _, b := range builtin {
		if strings.Contains(device, b.word) {
			if b.machine == "dgx-h200" && world <= 4 {
				return "h200x4" // the machine that its class was measured on
			}
			return b.machine
		}
	}
	return "dgx-h100"
}

// Settings are NCCL's for a group: ch8 has 8 channels.
func Settings(group string) map[string]string {
	channels, ok := strings.CutPrefix(group, "ch")
	if !ok || channels == "" || strings.Trim(channels, "0123456789") != "" {
		return nil
	}
	return map[string]string{"NCCL_MIN_CTAS": channels, "NCCL_MAX_CTAS": channels}
}
