//go:build !linux

package agentd

import "github.com/gozzard/gozzard/internal/agent"

// openFiles is nil: files are written on Linux only.
func (a *Agent) openFiles() agent.Files { return nil }

func (a *Agent) ownFiles() []string { return nil }
