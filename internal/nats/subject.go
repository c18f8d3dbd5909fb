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

// The prefixes of the three subjects of an agent.
const (
	subjectOp     = "op."  // commands to the agent
	subjectResult = "res." // hello and results of the agent
	subjectStatus = "st."  // status and heartbeats of the agent
)

// ErrDown says that the other end is not connected now. Nothing was sent and nothing is stored for later.
var ErrDown = errors.New("the fabric is not connected")

// peer identifies an agent in the fabric. Its text, "cloud.agent", is both the user name at the broker and the last two
// tokens of the agent's subjects.
type peer struct {
	cloud int
	agent gozzard.AgentID
}

func newPeer(cloud int, agent gozzard.AgentID) (peer, error) {
	if err := agent.Validate(); err != nil {
		return peer{}, err
	}
	if cloud < 0 {
		return peer{}, fmt.Errorf("cloud id %d is negative", cloud)
	}
	return peer{cloud: cloud, agent: agent}, nil
}

// parsePeer accepts only what String writes, so that one agent has one name.
func parsePeer(s string) (peer, error) {
	cloud, agent, ok := strings.Cut(s, ".")
	if !ok {
		return peer{}, fmt.Errorf("%q is not of the form cloud.agent", s)
	}
	n, err := strconv.Atoi(cloud)
	if err != nil || strconv.Itoa(n) != cloud {
		return peer{}, fmt.Errorf("%q is not a cloud id", cloud)
	}
	return newPeer(n, gozzard.AgentID(agent))
}

func (p peer) String() string { return strconv.Itoa(p.cloud) + "." + string(p.agent) }
