package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/audit"
)

// onPath serves the methods of one path.
func (a *api) onPath(methods map[string]Route) http.Handler {
	allowed := make([]string, 0, len(methods))
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if _, ok := methods[m]; ok {
			allowed = append(allowed, m)
		}
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rt, ok := methods[tableMethod(r)]
		if !ok {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			a.failStatus(w, r, http.StatusMethodNotAllowed,
				gozzard.Errorf(gozzard.ErrInvalid, "this path has the methods %s", strings.Join(allowed, ", ")))
			return
		}

		caller, err := a.checkAccess(r, rt.Access)
		if err == nil {
			err = rt.serve(a, w, r, caller)
		}
		if err != nil && !held(w, err) {
			audit.Refused(r.Context(), caller, err)
			a.fail(w, r, err)
		}
	})
}

// tableMethod is the method under which a request is in the route table.
func tableMethod(r *http.Request) string {
	if r.Method == http.MethodHead {
		return http.MethodGet
	}
	return r.Method
}

// instrument counts the requests of a path.
func (a *api) instrument(path string, h http.Handler) http.Handler {
	if a.Metrics == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &statusRecorder{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(rec, r)
		if rec.Header().Get("Content-Type") == streamType { // the length of a stream says nothing about the server
			return
		}
		a.Metrics.ObserveRequest(path, rec.code, time.Since(start))
	})
}

// statusRecorder remembers the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	code int
}

func (s *statusRecorder) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap gives http.ResponseController access to the connection.
func (s *statusRecorder) Unwrap() http.ResponseWriter { return s.ResponseWriter }
