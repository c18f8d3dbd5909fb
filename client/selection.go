package client

import (
	"net/url"
	"strconv"

	"github.com/gozzard/gozzard"
)

// Host names a host by its agent, or by its address. An address without a cloud must be known in exactly one cloud.
type Host struct {
	Agent gozzard.AgentID `json:"agent,omitempty"`
	Cloud *int            `json:"cloud,omitempty"`
	IP    string          `json:"ip,omitempty"`
}

// Selection says which processes a request is about. Namespaces and names may be patterns with * and ?; without a
// namespace, every namespace is meant. Give Namespace or Namespaces, not both. Give a list of hosts, or set All for
// every host that has the process. With a business, the processes of that business are selected: Names (then aliases)
// and Hosts may narrow them further; Namespace, Namespaces and All are not allowed. Processes names each process with its
// hosts, where they are not the same for all; it stands alone.
type Selection struct {
	BusinessSelection
	Namespace  string   `json:"namespace,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
	Names      []string `json:"names,omitempty"`
	Hosts      []Host   `json:"hosts,omitempty"`
	All        bool     `json:"all,omitempty"`

	Processes []ProcessOn `json:"processes,omitempty"`
}

// ProcessOn names one process on some hosts.
type ProcessOn struct {
	Namespace string            `json:"namespace"`
	Name      string            `json:"name"`
	Agents    []gozzard.AgentID `json:"agents"`
}

// BusinessSelection selects processes by their place in a business. It is empty while Biz is 0.
type BusinessSelection struct {
	Biz     int      `json:"biz,omitempty"`
	Env     string   `json:"env,omitempty"`     // 1 or test, 2 or experience, 3 or formal; empty means all
	Sets    []string `json:"sets,omitempty"`    // ids, or names
	Modules []string `json:"modules,omitempty"` // ids, or names
	// set.module.service_instance.process_name.process_id; a dot in a name is written \.
	Expression string `json:"expression,omitempty"`
}

func (s *BusinessSelection) addTo(v url.Values) {
	if s.Biz != 0 {
		v.Set("biz", strconv.Itoa(s.Biz))
	}
	if s.Env != "" {
		v.Set("env", s.Env)
	}

	for _, set := range s.Sets {
		v.Add("set", set)
	}
	for _, m := range s.Modules {
		v.Add("module", m)
	}

	if s.Expression != "" {
		v.Set("expression", s.Expression)
	}
}
