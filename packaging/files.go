// Package packaging has the files that a host needs beside the program.
package packaging

import _ "embed"

// AgentUnit is the systemd unit of an agent of root.
//
//go:embed gozzard-agent.service
var AgentUnit string

// AgentSettings is the configuration file of an agent, with every setting as a comment.
//
//go:embed agent.yaml
var AgentSettings string
