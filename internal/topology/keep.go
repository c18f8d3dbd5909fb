package topology

import "slices"

// Keep copies from an older state what BlueKing CMDB does not have: the name of the business and its configuration
// templates. It leaves out bindings to processes that do not exist any more, or that have a process template now.
func (b *Business) Keep(old *Business) {
	b.Name = old.Name
	bindable := map[int]bool{}
	b.each(func(s processAt) { bindable[s.process.ID] = s.process.Template == 0 })
	b.Templates = slices.Clone(old.Templates)
	for i := range b.Templates {
		t := &b.Templates[i]
		t.Templates = slices.Clone(t.Templates)
		t.Processes = slices.DeleteFunc(slices.Clone(t.Processes), func(id int) bool { return !bindable[id] })
		if len(t.Processes) == 0 {
			t.Processes = nil
		}
	}
}
