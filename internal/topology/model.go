package topology

import (
	"net/netip"
	"strconv"

	"github.com/gozzard/gozzard"
)

// Env is the environment of a set. Callers write it as a number or as its text.
type Env int

// The environments.
const (
	EnvNone       Env = -1 // of a set that CMDB has without an environment: only a query for all finds it
	EnvAny        Env = 0  // only in queries
	EnvTest       Env = 1
	EnvExperience Env = 2
	EnvFormal     Env = 3
)

// Valid reports whether this is one of the three environments.
func (e Env) Valid() bool { return e >= EnvTest && e <= EnvFormal }

// String is the environment as CMDB writes it: a number, or nothing.
func (e Env) String() string {
	if e == EnvNone {
		return ""
	}
	return strconv.Itoa(int(e))
}

// Business is one business with everything in it. Ids are unique within their kind and business. Lists keep the order
// of their source; see Sort.
type Business struct {
	ID        int
	Name      string
	Clouds    []Cloud
	Sets      []Set
	Templates []ConfigTemplate

	// Left has a sentence for each thing that its source has and that could not be taken over. Only a business from CMDB
	// has some: a document with a fault is rejected.
	Left []string

	// AttributesUnread means that its source did not give the attributes of sets, modules and hosts: see Keep.
	AttributesUnread bool
}

// Cloud is a cloud area: a network in which addresses are unique.
type Cloud struct {
	ID   int
	Name string
}

// Set is a group of modules in one environment.
type Set struct {
	ID         int
	Name       string
	Env        Env
	Attributes Extra
	Modules    []Module
}

// Module is a group of service instances with the same purpose.
type Module struct {
	ID              int
	Name            string
	ServiceTemplate int // 0: none
	Attributes      Extra
	Instances       []ServiceInstance
}

// ServiceInstance is one host of a module, with the processes that the module has there.
type ServiceInstance struct {
	ID             int
	Name           string
	Host           Host
	HostAttributes Extra // apart from Host, because they are no part of what names it
	Processes      []Process
}

// Host names the machine of a service instance. If Agent is set, it is the host of that agent; otherwise it is the host
// with the address in that cloud area.
type Host struct {
	Cloud int
	IP    netip.Addr // may be invalid when the host has only IPv6
	IPv6  netip.Addr // may be invalid
	Agent gozzard.AgentID
	ID    int // in CMDB, only carried for callers that know it; 0: not known
}

// Addr is the address by which the fleet knows the host: the IPv4 one if there is one.
func (h Host) Addr() gozzard.HostAddr {
	if h.IP.IsValid() {
		return gozzard.HostAddr{Cloud: h.Cloud, IP: h.IP}
	}
	return gozzard.HostAddr{Cloud: h.Cloud, IP: h.IPv6}
}

// Process is one program of a service instance, of which Num instances run.
type Process struct {
	ID       int
	Name     string // alias, unique on a host within the business
	FuncName string // the name of the program in the process list of the system; "" is Name
	Template int    // process template, 0: none
	Num      int    // instances on the host; 0 is 1
	Priority int

	// What only clients of CMDB read.
	FuncID   string
	BindInfo string // the addresses that the process binds: a list of objects in JSON; "" is an empty list

	// The definition, with placeholders. See Define.
	User           string
	WorkPath       string
	PIDFile        string
	Start          string
	Stop           string
	Restart        string
	Reload         string
	ForceStop      string
	Timeout        int // seconds that a command may take; 0 is 60
	StartCheckSecs int // how long after a start the process must be running; 0 is 5

	Native string // the flat keys of definitions that the document has, as a JSON object; see Flat
	More   string // what they mean, made by gozzard.EncodeSpec
}

// Count is the number of instances on the host.
func (p *Process) Count() int { return max(p.Num, 1) }

// ConfigTemplate is a configuration file for the processes that it is bound to.
type ConfigTemplate struct {
	ID        int
	Name      string
	FileName  string
	Path      string // of its folder, absolute
	Owner     string
	Group     string
	Mode      string // octal text such as "0644"
	Templates []int  // process templates that it is bound to
	Processes []int  // processes without a template that it is bound to
}

// Namespace is the namespace of the processes of a business.
func Namespace(biz int) string { return gozzard.BusinessNamespace(biz) }

// Key is the key of an instance. It is the same through every door.
func Key(biz int, alias string, local int) gozzard.Key {
	return gozzard.Key{Namespace: Namespace(biz), Name: alias + "_" + strconv.Itoa(local)}
}
