package gozzard

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// AgentID identifies an agent. It is made once on the host and stored in the agent's state folder, so it stays the
// same when addresses change.
type AgentID string

// Validate checks that the id can be part of a subject of the fabric.
func (id AgentID) Validate() error {
	if id == "" || len(id) > 64 {
		return fmt.Errorf("agent id must have 1 to 64 characters, has %d", len(id))
	}
	for i := 0; i < len(id); i++ {
		c := id[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			continue
		}
		return fmt.Errorf("agent id %q may only have letters, digits, _ and -", string(id))
	}
	return nil
}

// reservedAgents are words that people and programs take for something else than a host.
var reservedAgents = []string{"admin", "administrator", "agent", "agents", "all", "any", "cluster", "default", "enrolment",
	"everyone", "everything", "fleet", "gozzard", "host", "hosts", "local", "localhost", "me", "nil", "none", "null", "root",
	"self", "server", "system", "this", "token", "undefined", "unknown"}

// CheckNew checks an id that an agent wants to have from now on. It is stricter than Validate, which also accepts the
// ids that older versions have enrolled.
func (id AgentID) CheckNew() error {
	if err := id.Validate(); err != nil {
		return err
	}
	if id[0] == '-' || id[0] == '_' {
		return fmt.Errorf("agent id %q must begin with a letter or a digit", string(id))
	}
	if slices.Contains(reservedAgents, strings.ToLower(string(id))) {
		return fmt.Errorf("agent id %q is a reserved word", string(id))
	}
	return nil
}

// Key identifies a process on one host.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is the key as namespace:name.
func (k Key) String() string { return k.Namespace + ":" + k.Name }

// Compare orders keys by namespace, then name.
func (k Key) Compare(o Key) int {
	if c := strings.Compare(k.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, o.Name)
}

// ProcID identifies a process in the fleet.
type ProcID struct {
	Agent AgentID
	Key
}

// HostAddr is how callers name a host: an IP address within a cloud area.
type HostAddr struct {
	Cloud int
	IP    netip.Addr
}

// MaxHostAddrs is the largest number of addresses that one host can have.
const MaxHostAddrs = 16

// String is the address as cloud:ip.
func (a HostAddr) String() string { return strconv.Itoa(a.Cloud) + ":" + a.IP.String() }

// ParseHostAddr reads the form "cloud:ip", which callers use in lists of agent ids for hosts whose agent id they do
// not know.
func ParseHostAddr(s string) (HostAddr, error) {
	cloud, ip, ok := strings.Cut(s, ":")
	if !ok {
		return HostAddr{}, fmt.Errorf("%q is not of the form cloud:ip", s)
	}

	n, err := strconv.Atoi(cloud)
	if err != nil || n < 0 || strconv.Itoa(n) != cloud {
		return HostAddr{}, fmt.Errorf("%q is not a cloud id", cloud)
	}

	addr, err := ParseIP(ip)
	if err != nil {
		return HostAddr{}, err
	}

	return HostAddr{Cloud: n, IP: addr}, nil
}

// ParseIP reads the address of one host, without a zone. An IPv4 address in IPv6 form becomes an IPv4 address.
func ParseIP(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s)
	}
	addr = addr.Unmap()
	if addr.IsUnspecified() || addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return netip.Addr{}, fmt.Errorf("%q is not the address of one host", s)
	}
	return addr, nil
}
