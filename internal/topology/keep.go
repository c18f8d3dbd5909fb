package topology

import "slices"

// Keep takes over from an older state what CMDB does not tell: the name of the business and its configuration
// templates. A binding to a process that is gone, or that has a template by now, is let go.
func (b *Business) Keep(old *Business) {
	b.Name = old.Name
	bindable := map[int]bool{}
	b.each(func(s spot) { bindable[s.process.ID] = s.process.Template == 0 })
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
