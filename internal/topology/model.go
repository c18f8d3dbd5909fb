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
	EnvAny        Env = 0 // only in questions
	EnvTest       Env = 1
	EnvExperience Env = 2
	EnvFormal     Env = 3
)

// Valid reports whether a set can have it.
func (e Env) Valid() bool { return e >= EnvTest && e <= EnvFormal }

func (e Env) String() string { return strconv.Itoa(int(e)) }

// Business is one business, whole. Ids are unique within their kind and business; lists keep the order of their source.
type Business struct {
	ID        int
	Name      string
	Clouds    []Cloud
	Sets      []Set
	Templates []ConfigTemplate
}

// Cloud is a cloud area: a network in which addresses are unique.
type Cloud struct {
	ID   int
	Name string
}

// Set is a group of modules in one environment.
type Set struct {
	ID      int
	Name    string
	Env     Env
	Modules []Module
}

// Module is a group of service instances that do the same.
type Module struct {
	ID              int
	Name            string
	ServiceTemplate int // 0: none
	Instances       []ServiceInstance
}

// ServiceInstance is a module's presence on one host.
type ServiceInstance struct {
	ID        int
	Name      string
	Host      Host
	Processes []Process
}

// Host names the machine of a service instance. Agent wins where it is known; otherwise the host that has the
// address in that cloud is meant.
type Host struct {
	Cloud int
	IP    netip.Addr // may be invalid when the host has only IPv6
	IPv6  netip.Addr // may be invalid
	Agent gozzard.AgentID
}

// Addr is the address by which the fleet knows the host: the IPv4 one if there is one.
func (h Host) Addr() gozzard.HostAddr {
	if h.IP.IsValid() {
		return gozzard.HostAddr{Cloud: h.Cloud, IP: h.IP}
	}
	return gozzard.HostAddr{Cloud: h.Cloud, IP: h.IPv6}
}

// Process is one kind of daemon on one service instance, run Num times.
type Process struct {
	ID       int
	Name     string // alias, unique on a host within the business
	FuncName string // the program as the system shows it; "" is Name
	Template int    // process template, 0: none
	Num      int    // instances on the host; 0 is 1
	Priority int

	// The definition, with ${name} in it. See Define.
	User           string
	WorkPath       string
	PIDFile        string
	Start          string
	Stop           string
	Restart        string
	Reload         string
	ForceStop      string
	Timeout        int // seconds a command may take; 0 is 60
	StartCheckSecs int // 0 is 5
}

// Count is how many instances run on the host.
func (p *Process) Count() int { return max(p.Num, 1) }

// ConfigTemplate is a configuration file that is made for the processes it is bound to.
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

// Namespace is where the processes of a business are known to the fleet.
func Namespace(biz int) string { return gozzard.BusinessNamespace(biz) }

// Key names an instance to the fleet: the same process through every door.
func Key(biz int, alias string, local int) gozzard.Key {
	return gozzard.Key{Namespace: Namespace(biz), Name: alias + "_" + strconv.Itoa(local)}
}
