package topology

// Change is what must be recorded to get from one state of a business to another. Lists are sorted by id.
type Change struct {
	Biz  int
	Base int64 // version of the state it starts from; 0: the business is new

	// The head is replaced whole.
	Name      string
	Clouds    []Cloud
	Templates []ConfigTemplate

	PutSets      []Set // without their modules
	PutModules   []PlacedModule
	PutServices  []PlacedService
	DropSets     []int
	DropModules  []int
	DropServices []int

	PutNumbers  []Numbers
	DropNumbers []int // process ids
}

// PlacedModule is a module without its instances, and its set.
type PlacedModule struct {
	Set    int
	Module Module
}

// PlacedService is a service instance with its processes, and its module.
type PlacedService struct {
	Module  int
	Service ServiceInstance
}

// Numbers are the instance numbers of one process: instance Local (1 to Count) has number (HostNum-1)*Per+Local.
// They belong to the alias and module under which they were given: a process that changes either gets new ones.
type Numbers struct {
	Process int
	Module  int
	Alias   string
	HostNum int
	Per     int // the largest count of this module and alias when the number was given
	Count   int
}

// Inst is the number of an instance within module and alias.
func (n Numbers) Inst(local int) int { return (n.HostNum-1)*n.Per + local }
