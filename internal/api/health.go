package api

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
)

// readyWithin is how long /readyz waits for the parts it asks.
const readyWithin = 2 * time.Second

// getHealth tells that the process serves requests, and nothing else: it is for everybody.
func (a *api) getHealth(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	return answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

// getReady tells whether operations can be accepted now.
func (a *api) getReady(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if a.Ready == nil {
		return answer(w, http.StatusOK, map[string]string{"status": "ready"})
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	if err := a.Ready(ctx); err != nil {
		a.Log.WarnContext(ctx, "not ready", "err", err)
		return answer(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
	}
	return answer(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (a *api) getMetrics(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if a.Metrics == nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "no metrics are kept")
	}
	a.Metrics.Handler().ServeHTTP(w, r)
	return nil
}

// fromLoopback reports whether the peer is on this machine. A proxy on this machine hides its clients: what it
// forwards says so and is not taken for local.
func fromLoopback(r *http.Request) bool {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, h := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via"} {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	return true
}
