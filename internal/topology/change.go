package topology

import "github.com/gozzard/gozzard"

// Change is the difference between two states of a business, as the record needs it. Lists are sorted by id.
type Change struct {
	Biz  int
	Base int64 // version of the state that it starts from; 0: the business is new

	// These replace the old values.
	Name      string
	Clouds    []Cloud
	Templates []ConfigTemplate
	Left      []string

	// Put: add or replace. Drop: remove, by id.
	PutSets      []Set // without their modules
	PutModules   []PlacedModule
	PutServices  []PlacedService
	DropSets     []int
	DropModules  []int
	DropServices []int

	PutNumbers  []Numbers
	DropNumbers []int // process ids

	NewBytes int                // what the change counts against the quota of definitions of its caller
	Charge   []gozzard.Spending // what the record counts with the change, if several servers share it
}

// PlacedModule is a module without its instances, and the id of its set.
type PlacedModule struct {
	Set    int
	Module Module
}

// PlacedService is a service instance with its processes, and the id of its module.
type PlacedService struct {
	Module  int
	Service ServiceInstance
}

// Numbers are the instance numbers of one process. Each instance has a local number, 1 to Count, which is unique on
// its host. Its instance number, (HostNum-1)*Per+local, is unique within module and alias. A process that changes its
// module or alias gets new numbers.
type Numbers struct {
	Process int
	Module  int
	Alias   string
	HostNum int
	Per     int // the largest Count within this module and alias when the numbers were given
	Count   int
}

// Inst is the instance number of a local number.
func (n Numbers) Inst(local int) int { return (n.HostNum-1)*n.Per + local }
