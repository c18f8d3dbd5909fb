package agentd

import "github.com/gozzard/gozzard/internal/host"

// ServeGuard must be the first call of a program that runs agents. If an agent has started this process as the guard of
// its commands, ServeGuard does that work and does not return.
func ServeGuard() { host.ServeGuard() }
