package chrome

import (
	"encoding/json"
	"strconv"
)

// place reads the members of otherData that give the file's place in a run. Values in an unexpected form are
// ignored.
func (p *parser) place(key, text string) {
	switch key {
	case "epoch_unix_ns":
		p.info.EpochNs, _ = strconv.ParseInt(text, 10, 64)
	case "part":
		if err := json.Unmarshal([]byte(text), &p.info.Part); err != nil {
			p.info.Part = nil
		}
	case "clock_sync":
		if err := json.Unmarshal([]byte(text), &p.info.ClockSync); err != nil {
			p.info.ClockSync = nil
		}
	case "gpu_clock_sync":
		if err := json.Unmarshal([]byte(text), &p.info.GPUSync); err != nil {
			p.info.GPUSync = nil
		}
	}
}
