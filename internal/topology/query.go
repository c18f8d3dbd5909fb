package topology

import (
	"net/netip"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
)

// Query chooses processes of one business: every field that is not empty must fit, and a list fits when one of its
// values does.
type Query struct {
	Biz          int
	Env          Env // EnvAny: all
	Sets         []int
	Modules      []int
	Services     []int
	Names        []string // aliases
	Processes    []int
	Clouds       []int
	IPs          []netip.Addr // IPv4 addresses, exact
	States       []gozzard.RunState
	Hosted       []bool
	Searches     []string // each must be part of the IPv4 address or of the cloud's name
	SetNames     []string
	ModuleNames  []string
	ServiceNames []string

	// Expression chooses by names instead; nil matches all.
	Expression *Expression

	// Visible leaves hosts out as if they were not there, before anything else is looked at; nil: all are. It is
	// asked at most once for each host.
	Visible func(h *Host) bool `json:"-"`

	Order []Order
	Start int
	Limit int // < 0: all
}

// Expression is one pattern for each of the five parts of a process's name. A nil part matches all. Slice is taken
// of the processes that fit the environment and the five parts, in order of their ids, before other filters.
type Expression struct {
	Set, Module, Service, Name, Process *expression.Expression
	Slice                               *expression.Slice
}

// Order is one key of sorting; processes are sorted by id where the keys leave a choice.
type Order struct {
	By         Field
	Descending bool
}

// Field is what can be sorted by.
type Field uint8

// The fields.
const (
	ByProcess Field = iota
	BySet
	ByModule
	ByName
	ByIP
)

// Row is a process as an answer shows it. Strings are shared.
type Row struct {
	Biz             int
	Set             int
	SetName         string
	Env             Env
	Module          int
	ModuleName      string
	ServiceTemplate int
	Service         int
	ServiceName     string
	Host            Host
	CloudName       string // "" when the business does not name the cloud
	Process         int
	Name            string
	Template        int
	Priority        int
	State           gozzard.RunState // of all its instances together; see Together
	Hosted          bool
	Configs         []ConfigRef
	Instances       []RowInstance
	ReportedAt      int64 // epoch seconds, the oldest of its instances; 0: never
	Stale           bool
}

// Expression is the dotted name people know the process by.
func (r *Row) Expression() string {
	return r.SetName + "." + r.ModuleName + "." + r.ServiceName + "." + r.Name + "." + strconv.Itoa(r.Process)
}

// RowInstance is one instance in a Row.
type RowInstance struct {
	Local  int
	Inst   int
	Status Status
}

// ConfigRef names a configuration template that is bound to a process.
type ConfigRef struct {
	ID       int
	Name     string
	FileName string
}

// Status is what the fleet knows of an instance now.
type Status struct {
	State      gozzard.RunState
	Hosted     bool
	PID        int32
	ReportedAt int64 // epoch seconds; 0: never
	Stale      bool
}

// Together folds the instances of a process into one: running and hosted only if all are, unregistered only if all are.
func Together(all []Status) (state gozzard.RunState, hosted bool) {
	if len(all) == 0 {
		return gozzard.StateUnregistered, false
	}
	state, hosted = all[0].State, true
	for _, s := range all {
		if s.State != state {
			state = gozzard.StateStopped
		}
		hosted = hosted && s.Hosted
	}
	return state, hosted
}
