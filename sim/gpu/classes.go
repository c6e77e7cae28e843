package gpu

// NVSwitch90 is the class that was measured: sm_90 GPUs behind NVSwitch.
func NVSwitch90() Class { return builtIn("nvswitch-sm90") }

// ClassFor returns the class of a machine by compute capability (90 for
// sm_90) and by how its GPUs are joined, with each other and, by c2c, with the
// CPU: sm_100 behind NVSwitch beside a Grace CPU is a tray of an NVL72.
func ClassFor(sm int, nvlink, nvswitch, c2c bool) Class {
	return builtIn(classFor(sm, nvlink, nvswitch, c2c))
}

// ClassForArch returns the class of GPUs of AMD by architecture ("gfx942") and compute units, the zero Class
// where there is none. By a file MI325X is as MI300X: they differ in memory alone.
func ClassForArch(arch string, cus int) Class {
	switch {
	case arch == "gfx90a":
		return builtIn("mi250x")
	case arch == "gfx942" && cus == 228:
		return builtIn("mi300a")
	case arch == "gfx942":
		return builtIn("mi300x")
	case arch == "gfx950":
		return builtIn("mi355x")
	}
	return Class{}
}

// Of returns the class of one model of GPU among those that a class is for, by the model's name in its data
// sheet ("H100"): the class itself where nothing sets the model apart.
func (c Class) Of(model string) Class {
	if c.Name == "nvswitch-sm90" && model == "H100" {
		return builtIn("nvswitch-h100")
	}
	return c
}

func classFor(sm int, nvlink, nvswitch, c2c bool) string {
	if !nvlink {
		switch {
		case c2c && sm >= 90 && sm < 100: // a single superchip: its NIC and memory are those of several
			return "superchip-sm90"
		case c2c && sm >= 120:
			return "superchip-sm121"
		case sm >= 120:
			return "pcie-sm120"
		case sm >= 89:
			return "pcie-sm89"
		case sm >= 80:
			return "pcie-sm80"
		}
		return "pcie-sm70"
	}
	switch {
	case sm >= 103 && nvswitch && c2c:
		return "nvl72-sm103"
	case sm >= 103:
		return "nvswitch-sm103"
	case sm >= 100 && nvswitch && c2c:
		return "nvl72-sm100"
	case sm >= 100:
		return "nvswitch-sm100"
	case sm >= 90 && nvswitch:
		return "nvswitch-sm90"
	case sm >= 90 && c2c:
		return "superchip-sm90"
	case sm >= 90:
		return "mesh-sm90"
	case sm >= 80 && nvswitch:
		return "nvswitch-sm80"
	case sm >= 80:
		return "mesh-sm80"
	case nvswitch:
		return "nvswitch-sm70"
	}
	return "mesh-sm70"
}

// builtIn returns a class whose file is part of the program; a test reads them
// all.
func builtIn(name string) Class {
	c, err := Named(name)
	if err != nil {
		panic(err)
	}
	return c
}
