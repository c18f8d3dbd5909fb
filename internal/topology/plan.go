package topology

// Plan describes a change for people.
type Plan struct {
	Added   []Item
	Changed []Item
	Removed []Item
}

// Item is one thing that is added, changed or removed.
type Item struct {
	Kind   string // business, cloud, set, module, service instance, process, config template
	ID     int
	Name   string   // with dots, from the set down: set.module.service instance.process
	Fields []string // what changes, in the form "priority: 1 -> 2"
}

// Empty reports whether nothing changes.
func (p *Plan) Empty() bool { return len(p.Added)+len(p.Changed)+len(p.Removed) == 0 }
