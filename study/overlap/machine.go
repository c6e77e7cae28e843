package overlap

import "strings"

// Settings are NCCL's for a group: ch8 has 8 channels.
func Settings(group string) map[string]string {
	channels, ok := strings.CutPrefix(group, "ch")
	if !ok || channels == "" || strings.Trim(channels, "0123456789") != "" {
		return nil
	}
	return map[string]string{"NCCL_MIN_CTAS": channels, "NCCL_MAX_CTAS": channels}
}
