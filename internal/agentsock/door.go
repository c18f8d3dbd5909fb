package agentsock

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// verb is one thing that can be asked for.
type verb struct {
	method string
	least  rank
	great  bool // the answer may be: few are made and sent at a time
	answer func(s *Server) (any, int)
}

// verbs are all there are. None of them changes a process.
var verbs = map[string]verb{
	"/status":    {method: http.MethodGet, least: member, answer: (*Server).status},
	"/processes": {method: http.MethodGet, least: member, great: true, answer: (*Server).processes},
	"/reconnect": {method: http.MethodPost, least: owner, answer: (*Server).reconnect},
}

// betweenReconnects keeps a script that repeats itself from making the server see a new session over and over.
const betweenReconnects = time.Second

// How many great answers there are at a time for members, and for owners, and how long one more waits.
const (
	maxGreat = 2
	roomWait = 3 * time.Second
)

// ServeHTTP answers one request of somebody whom the gate let in.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var from *conn
	if from, _ = r.Context().Value(peerKey{}).(*conn); from == nil { // not by the gate: nobody that is known
		from = &conn{}
	}

	v, known := verbs[r.URL.Path]
	switch {
	case !known:
		refuse(w, http.StatusNotFound, "there is GET /status, GET /processes and POST /reconnect")
	case r.Method != v.method:
		w.Header().Set("Allow", v.method)
		refuse(w, http.StatusMethodNotAllowed, r.URL.Path+" is asked for by "+v.method)
	case from.rank < v.least:
		refuse(w, http.StatusForbidden,
			r.URL.Path+" is for root and the agent's own account; members of its group may look only")
	case r.ContentLength != 0 || r.URL.RawQuery != "":
		refuse(w, http.StatusBadRequest, r.URL.Path+" takes neither a body nor parameters")
	case v.great:
		s.serveGreat(w, r, from.rank, v)
	default:
		if v.least == owner {
			s.o.Log.Info("asked for on this host", "verb", r.URL.Path, "uid", from.peer.uid, "pid", from.peer.pid)
		}
		answer, code := v.answer(s)
		write(w, code, answer)
	}
}

// serveGreat bounds what answers take of the agent's memory, also when nobody reads them. Members and owners do not
// wait for each other.
func (s *Server) serveGreat(w http.ResponseWriter, r *http.Request, who rank, v verb) {
	room := s.members

	if who == owner {
		room = s.owners
	}

	ctx, cancel := context.WithTimeout(r.Context(), roomWait)
	defer cancel()

	select {
	case room <- struct{}{}:
		defer func() { <-room }()
	case <-ctx.Done():
		refuse(w, http.StatusServiceUnavailable, "others are being answered, try again")
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
	if time.Since(s.remade) < betweenReconnects {
		return fault{"the link was made anew a moment ago"}, http.StatusTooManyRequests
	}
	if err := s.o.Reconnect(); err != nil {
		return fault{err.Error()}, http.StatusServiceUnavailable
	}
	s.remade = time.Now()
	return struct{}{}, http.StatusAccepted
}

func refuse(w http.ResponseWriter, code int, why string) { write(w, code, fault{why}) }

// write sends an answer whole or not at all.
func write(w http.ResponseWriter, code int, v any) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)

	if err := enc.Encode(v); err != nil {
		code = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"error":"the answer cannot be written"}` + "\n")
	}

	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // who does not read does not want it
}
