package agentsock

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// verb is one kind of request.
type verb struct {
	method string
	least  rank // the lowest rank that may use it
	large  bool // the answer may be large, so only a few are made and sent at the same time
	answer func(s *Server) (any, int)
}

// verbs are all kinds of requests. None of them changes a process.
var verbs = map[string]verb{
	"/status":    {method: http.MethodGet, least: member, answer: (*Server).status},
	"/processes": {method: http.MethodGet, least: member, large: true, answer: (*Server).processes},
	"/reconnect": {method: http.MethodPost, least: owner, answer: (*Server).reconnect},
}

// betweenReconnects is the shortest time between two reconnects, so that a script in a loop does not flood the server
// with new sessions.
const betweenReconnects = time.Second

// How many large answers there may be at the same time, for members and for owners, and how long one more waits.
const (
	maxLarge = 2
	slotWait = 3 * time.Second
)

// ServeHTTP answers one request from a connection that authListener has accepted.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var from *conn
	if from, _ = r.Context().Value(peerKey{}).(*conn); from == nil { // not from authListener: no rights
		from = &conn{}
	}

	v, known := verbs[r.URL.Path]
	switch {
	case !known:
		reject(w, http.StatusNotFound, "unknown path: use GET /status, GET /processes or POST /reconnect")
	case r.Method != v.method:
		w.Header().Set("Allow", v.method)
		reject(w, http.StatusMethodNotAllowed, r.URL.Path+" needs the method "+v.method)
	case from.rank < v.least:
		reject(w, http.StatusForbidden,
			r.URL.Path+" is for root and the agent's own account; members of its group may look only")
	case r.ContentLength != 0 || r.URL.RawQuery != "":
		reject(w, http.StatusBadRequest, r.URL.Path+" takes neither a body nor parameters")
	case v.large:
		s.serveLarge(w, r, from.rank, v)
	default:
		if v.least == owner {
			s.o.Log.Info("request on the local socket",
				"verb", r.URL.Path, "uid", from.peer.uid, "pid", from.peer.pid)
		}
		answer, code := v.answer(s)
		write(w, code, answer)
	}
}

// serveLarge limits the memory that large answers use, even if the clients do not read them. Members and owners have
// separate limits, so they do not wait for each other.
func (s *Server) serveLarge(w http.ResponseWriter, r *http.Request, from rank, v verb) {
	slots := s.members
	if from == owner {
		slots = s.owners
	}

	ctx, cancel := context.WithTimeout(r.Context(), slotWait)
	defer cancel()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		reject(w, http.StatusServiceUnavailable, "the agent is answering other requests, try again")
		return
	}

	answer, code := v.answer(s)
	write(w, code, answer)
}

func (s *Server) status() (any, int) {
	st := s.o.Status()
	st.Refused = s.refused.Load()
	return st, http.StatusOK
}

func (s *Server) processes() (any, int) {
	rows, count := s.o.Processes(MaxProcesses)
	if rows == nil {
		rows = []Process{}
	}
	return Processes{Count: count, Processes: rows}, http.StatusOK
}

func (s *Server) reconnect() (any, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.lastReconnect) < betweenReconnects {
		return fault{"the agent has reconnected a moment ago"}, http.StatusTooManyRequests
	}

	if err := s.o.Reconnect(); err != nil {
		return fault{err.Error()}, http.StatusServiceUnavailable
	}
	s.lastReconnect = time.Now()
	return struct{}{}, http.StatusAccepted
}

// reject answers with an error.
func reject(w http.ResponseWriter, code int, why string) { write(w, code, fault{why}) }

// write sends an answer completely or not at all.
func write(w http.ResponseWriter, code int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		code = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"error":"cannot encode the answer"}` + "\n")
	}

	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // an error means that the client is gone
}
