package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// readyTimeout is how long /readyz waits for an answer of the server's parts.
const readyTimeout = 2 * time.Second

// getHealth answers that the server serves requests. It is open to everybody, so it says nothing else.
func (a *api) getHealth(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	return answer(w, http.StatusOK, client.Health{Status: "ok"})
}

// getReady answers whether the server accepts operations now.
func (a *api) getReady(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if a.Ready == nil {
		return answer(w, http.StatusOK, client.Health{Status: "ready"})
	}

	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if err := a.Ready(ctx); err != nil {
		a.Log.WarnContext(ctx, "server is not ready", "err", err)
		return answer(w, http.StatusServiceUnavailable, client.Health{Status: "not ready", Detail: reason(err)})
	}

	h := client.Health{Status: "ready"}
	if a.Detail != nil {
		h.Detail = a.Detail()
	}
	return answer(w, http.StatusOK, h)
}

// reason is the part of an error that is written for callers; "" if there is none. The answer is open to everybody.
func reason(err error) string {
	var known *gozzard.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return ""
}

func (a *api) getMetrics(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if a.Metrics == nil {
		return gozzard.Errorf(gozzard.ErrNotFound, "this server has no metrics")
	}
	a.Metrics.Handler().ServeHTTP(w, r)
	return nil
}
