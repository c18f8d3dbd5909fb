package topology

// Plan says in words what a change does, for the person who asked for it.
type Plan struct {
	Added   []Item
	Changed []Item
	Removed []Item
}

// Item is one thing that a plan is about.
type Item struct {
	Kind   string // business, cloud, set, module, service instance, process, config template
	ID     int
	Name   string   // dotted, from the set down
	Fields []string // what changes, as "priority: 1 -> 2"
}

// Empty reports whether nothing changes.
func (p *Plan) Empty() bool { return len(p.Added)+len(p.Changed)+len(p.Removed) == 0 }
