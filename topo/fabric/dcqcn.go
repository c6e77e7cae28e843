package fabric

import "math"

// DCQCN overrides single parameters of DCQCN, with the names and units of ConnectX's firmware (mlxconfig,
// /sys/class/net/*/ecn). A nil member keeps the value of the congestion control or preset.
type DCQCN struct {
	TimeReset *float64 `json:"rpg_time_reset,omitempty"` // us between increases
	// of 64 bytes sent between increases; 0: by time alone
	ByteReset *float64 `json:"rpg_byte_reset,omitempty"`
	Threshold *float64 `json:"rpg_threshold,omitempty"` // increases before the additive ones
	AI        *float64 `json:"rpg_ai_rate,omitempty"`   // Mbit/s
	HAI       *float64 `json:"rpg_hai_rate,omitempty"`  // Mbit/s
	MinRate   *float64 `json:"rpg_min_rate,omitempty"`  // Mbit/s
	// percent of the rate that a cut leaves at least
	MinDecFac *float64 `json:"rpg_min_dec_fac,omitempty"`
	Monitor   *float64 `json:"rate_reduce_monitor_period,omitempty"` // us between cuts
	Gain      *float64 `json:"dce_tcp_g,omitempty"`                  // of 1024, of alpha that an update keeps
	AlphaRTT  *float64 `json:"dce_tcp_rtt,omitempty"`                // us between updates of alpha
	Alpha     *float64 `json:"initial_alpha_value,omitempty"`        // of 1024, at the first notification
	Clamp     *float64 `json:"clamp_tgt_rate,omitempty"`             // 1: each cut sets the target rate
	CNPs      *float64 `json:"min_time_between_cnps,omitempty"`      // us, of a queue pair
}

// knob describes one parameter of DCQCN: its key, bounds, whether it is an integer, and its field.
type knob struct {
	key       string
	low, high float64
	whole     bool
	of        func(*DCQCN) **float64
}

func knobs() []knob {
	return []knob{
		{"rpg_time_reset", 1, 131071, false, func(d *DCQCN) **float64 { return &d.TimeReset }},
		{"rpg_byte_reset", 0, 1 << 30, true, func(d *DCQCN) **float64 { return &d.ByteReset }},
		{"rpg_threshold", 0, 31, true, func(d *DCQCN) **float64 { return &d.Threshold }},
		{"rpg_ai_rate", 0, 1e6, false, func(d *DCQCN) **float64 { return &d.AI }},
		{"rpg_hai_rate", 0, 1e6, false, func(d *DCQCN) **float64 { return &d.HAI }},
		{"rpg_min_rate", 1, 1e6, false, func(d *DCQCN) **float64 { return &d.MinRate }},
		{"rpg_min_dec_fac", 1, 99, true, func(d *DCQCN) **float64 { return &d.MinDecFac }},
		{"rate_reduce_monitor_period", 1, 131071, false, func(d *DCQCN) **float64 { return &d.Monitor }},
		{"dce_tcp_g", 0, 1023, true, func(d *DCQCN) **float64 { return &d.Gain }},
		{"dce_tcp_rtt", 1, 131071, false, func(d *DCQCN) **float64 { return &d.AlphaRTT }},
		{"initial_alpha_value", 1, 1024, true, func(d *DCQCN) **float64 { return &d.Alpha }},
		{"clamp_tgt_rate", 0, 1, true, func(d *DCQCN) **float64 { return &d.Clamp }},
		{"min_time_between_cnps", 0, 4095, false, func(d *DCQCN) **float64 { return &d.CNPs }},
	}
}

// dcqcn reads the object dcqcn of the member packets and checks the bounds of its members.
func (r *reader) dcqcn(p *Packets) error {
	p.DCQCN = &DCQCN{}
	return r.object(func(key string, at int64) error {
		from := r.Next()
		p.at["dcqcn."+key] = from
		for _, k := range knobs() {
			if k.key != key {
				continue
			}
			v, err := r.number(key)
			if err != nil {
				return err
			}
			if !(v >= k.low && v <= k.high) || k.whole && v != math.Trunc(v) {
				kind := "number"
				if k.whole {
					kind = "whole number"
				}
				return r.Fail(from, "", "%s %g: write a %s from %.10g to %.10g", key, v, kind, k.low, k.high)
			}
			*k.of(p.DCQCN) = &v
			return nil
		}
		return r.Fail(at, "docs/FABRIC.md lists them", "unknown member %q of dcqcn", key)
	})
}
