package gozzard

import (
	"fmt"
	"time"
)

// Limits of a restart of agents.
const (
	DefaultRestartWait = 30 * time.Second // for the operations that are in progress on the host
	MaxRestartWait     = time.Hour
	MaxRestartRemark   = 1000 // bytes
	maxRestartVersion  = 128  // bytes
)

// RestartSpec is how an agent restarts. It is a part of a Spec for ActionRestartAgent, which has nothing else.
//
// The processes of the host are not touched: the program of the agent takes over its process again and finds them.
type RestartSpec struct {
	Version string `json:"version,omitempty"` // that the agent must have; "" means any
	Wait    int    `json:"wait,omitempty"`    // seconds that operations in progress get; then the restart is rejected
	Force   bool   `json:"force,omitempty"`   // do not wait: operations in progress are interrupted
	Remark  string `json:"remark,omitempty"`  // why, for the log of the host
}

// AgentKey is the place of the restarts of an agent in the order of operations on its host. No process has it: a restart
// needs a grant for every namespace (Grant.may).
func AgentKey() Key { return Key{Namespace: "gozzard-agent", Name: "agent:restart"} }

// Validate checks everything that needs no host.
func (s *RestartSpec) Validate() error {
	switch most := int(MaxRestartWait / time.Second); {
	case s.Wait < 0 || s.Wait > most:
		return fmt.Errorf("wait must be 0 to %d seconds, is %d", most, s.Wait)
	case len(s.Version) > maxRestartVersion:
		return fmt.Errorf("version has %d bytes, at most %d are allowed", len(s.Version), maxRestartVersion)
	case len(s.Remark) > MaxRestartRemark:
		return fmt.Errorf("remark has %d bytes, at most %d are allowed", len(s.Remark), MaxRestartRemark)
	}
	return nil
}

// RestartItem is the item of an operation that restarts the agents of hosts.
func RestartItem(s RestartSpec, targets []Target) Item {
	return Item{Action: ActionRestartAgent, Key: AgentKey(), Spec: &Spec{Restart: &s}, Targets: targets}
}
