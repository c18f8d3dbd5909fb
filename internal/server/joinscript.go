package server

import (
	"os"
	"runtime"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/packaging"
)

// joinScript is what hosts need to join with a script of this server, nil if it has no enrolled hosts.
func (s *Server) joinScript() *api.JoinScript {
	if s.trust.registry == nil {
		return nil
	}

	// The program that runs, also after its file was replaced.
	program := "/proc/self/exe"
	if _, err := os.Stat(program); err != nil {
		if program, err = os.Executable(); err != nil {
			s.options.Log.Warn("cannot find the file of this program: /join is not served", "err", err)
			return nil
		}
	}
	return &api.JoinScript{Platform: runtime.GOOS + "-" + runtime.GOARCH, Program: program, Version: s.options.Version,
		Authority: s.authorityPEM, Unit: packaging.AgentUnit, Settings: packaging.AgentSettings}
}
