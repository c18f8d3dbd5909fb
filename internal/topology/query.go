package topology

import (
	"net/netip"
	"strconv"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/expression"
)

// Query selects processes of one business. A process must match every field that is not empty. It matches a list when
// it matches one of the values.
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
	Conditions   []gozzard.Condition `json:",omitempty"` // of one instance at least
	Hosted       []bool
	Searches     []string // each must be part of the IPv4 address or of the cloud's name
	SetNames     []string
	ModuleNames  []string
	ServiceNames []string

	// Expression selects by names and ids; nil matches all.
	Expression *Expression

	// Visible reports whether the caller may see a host. The answer is as if other hosts did not exist. nil: all are
	// visible. It is called at most once for each host.
	Visible func(h *Host) bool `json:"-"`

	Order []Order
	Start int
	Limit int // negative: all
}

// Expression is one pattern for each of the five parts of a process's dotted name. A nil part matches all. Slice
// selects by position among the processes that match the environment and the five parts, in the order of their ids.
// It comes before the other fields of a query.
type Expression struct {
	Set, Module, Service, Name, Process *expression.Expression
	Slice                               *expression.Slice
}

// Order is one sort key. Processes that are equal in all keys are sorted by id.
type Order struct {
	By         Field
	Descending bool
}

// Field is a field that processes can be sorted by.
type Field uint8

// The fields.
const (
	ByProcess Field = iota
	BySet
	ByModule
	ByName
	ByIP
)

// Row is a process in the answer to a query.
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
	State           gozzard.RunState // combined from all instances; see Together
	Hosted          bool
	Configs         []ConfigRef
	Instances       []RowInstance
	ReportedAt      int64 // Unix seconds, the oldest of its instances; 0: never
	Stale           bool
}

// Expression is the dotted name of the process: set, module, service instance, alias and id.
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

// Status is the current status of an instance.
type Status struct {
	State      gozzard.RunState
	Hosted     bool
	PID        int32
	ReportedAt int64 // Unix seconds; 0: never
	Stale      bool  // the agent has not reported for too long

	Condition gozzard.Condition // as people see it
}

// Together combines the statuses of the instances of a process. The process is running, unregistered or hosted only if
// all instances are. If their states differ, it is stopped.
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
