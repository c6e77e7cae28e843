package overlap

import (
	"regexp"
	"strings"
	"sync"
)

// Settings are NCCL's for a group: ch8 has 8 channels.
func Settings(group string) map[string]string {
	channels, ok := strings.CutPrefix(group, "ch")
	if !ok || channels == "" || strings.Trim(channels, "0123456789") != "" {
		return nil
	}
	return map[string]string{"NCCL_MIN_CTAS": channels, "NCCL_MAX_CTAS": channels}
}

var groups = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:def2?|high|cga\d{1,2}|ch[1-9]\d?)$`)
})

// known returns an error for a communicator group whose settings are not known.
func known(group string) error {
	if !groups().MatchString(group) {
		return fault("the group %q is not known; def and def2 have no settings, high is of a stream of "+
			"high priority, ch8 has 8 channels, cga0 no clusters", group)
	}
	return nil
}
