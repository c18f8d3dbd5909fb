package agentd

import "github.com/gozzard/gozzard/internal/host"

// Supported returns an error that says what to do instead on a system without an agent.
func Supported() error { return host.Supported() }
