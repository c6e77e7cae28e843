package site

import "fmt"

// Merge combines several files about one network, such as the neighbours of each device, into one Plan.
func Merge(plans ...*Plan) (*Plan, error) {
	if len(plans) == 1 {
		return plans[0], nil
	}
	out := newPlan()
	named := 0
	for _, p := range plans {
		for _, d := range p.order {
			if err := out.device(d, p.roles[d]); err != nil {
				return nil, fault(p.file(), 1, 1, "", "%v", err)
			}
			out.ports[d] = max(out.ports[d], p.ports[d])
		}
		if out.cables = append(out.cables, p.cables...); len(out.cables) > 2*maxCables {
			return nil, fault(p.file(), 1, 1, "describe a smaller network", "more than %d cables",
				2*maxCables)
		}
		for _, a := range p.assumed {
			if len(p.assumed) == 1 && len(p.cables) > 0 && a == nameNote(p.file(), p.cables[0].a.device) {
				named++
				continue
			}
			out.assume("%s", a)
		}
		out.files = append(out.files, p.files...)
	}
	if named > 0 {
		out.assume("%d files are of the devices that they are named after", named)
	}
	if len(out.files) > 3 {
		out.files = []string{fmt.Sprintf("%s and %d more files", out.files[0], len(out.files)-1)}
	}
	return out, nil
}

// nameNote returns the note that a file's device was derived from the file's name.
func nameNote(file, device string) string {
	return fmt.Sprintf("the file %s is of the device %s, by the file's name", file, device)
}
