package server

import (
	"context"
	"fmt"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/notify"
)

// openNotify makes what sends alerts to receivers.
func (s *Server) openNotify(context.Context) (err error) {
	o := &s.options
	if d := o.Notify.HostLost; d != 0 && (d < 5*time.Second || d > 24*time.Hour) {
		return fmt.Errorf("--host-lost-after %s: use 5s to 24h", d)
	}
	var gone func(gozzard.AgentID) bool
	if s.trust.registry != nil {
		gone = func(a gozzard.AgentID) bool {
			st := s.trust.registry.StateOf(a)
			return st == enrol.StateRemoved || st == enrol.StateRevoked
		}
	}
	s.notify, err = notify.New(notify.Options{Store: s.store, Plane: s.plane, Fleet: s.fleet, Rights: s.rightsLater, Gone: gone,
		Settings: o.Notify, Metrics: s.metrics, Log: o.Log, Now: o.Now})
	return err
}
