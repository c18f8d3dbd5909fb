package nats

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// MaxMessage is the largest message that the fabric carries, in bytes.
const MaxMessage = 1 << 20

// The prefixes of the three subjects of an agent, and of those of servers.
const (
	subjectOp     = "op."  // commands to the agent
	subjectResult = "res." // hello and results of the agent
	subjectStatus = "st."  // status and heartbeats of the agent
	subjectServer = "sv."  // what servers tell each other: sv.<to>.<from>
)

// ErrDown says that the other end is not connected now. Nothing was sent and nothing is stored for later.
var ErrDown = errors.New("the fabric is not connected")

// agentName identifies an agent in the fabric. Its text, "cloud.agent", is both the user name at the broker and the last two
// tokens of the agent's subjects.
type agentName struct {
	cloud int
	agent gozzard.AgentID
}

func newAgentName(cloud int, agent gozzard.AgentID) (agentName, error) {
	if err := agent.Validate(); err != nil {
		return agentName{}, err
	}
	if cloud < 0 {
		return agentName{}, fmt.Errorf("cloud id %d is negative", cloud)
	}
	return agentName{cloud: cloud, agent: agent}, nil
}

// parseAgentName accepts only what String writes, so that one agent has one name.
func parseAgentName(s string) (agentName, error) {
	cloud, agent, ok := strings.Cut(s, ".")
	if !ok {
		return agentName{}, fmt.Errorf("%q is not of the form cloud.agent", s)
	}
	n, err := strconv.Atoi(cloud)
	if err != nil || strconv.Itoa(n) != cloud {
		return agentName{}, fmt.Errorf("%q is not a cloud id", cloud)
	}
	return newAgentName(n, gozzard.AgentID(agent))
}

func (p agentName) String() string { return strconv.Itoa(p.cloud) + "." + string(p.agent) }
