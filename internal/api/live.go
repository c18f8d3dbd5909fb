package api

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/live"
)

const (
	liveType  = "application/octet-stream"
	livePart  = 256 << 10 // of a snapshot, that a client must read within streamStall
	liveRowsK = 32 << 10  // the largest body that asks for rows
)

// joinLive adds a viewer for the length of a request.
func (a *api) joinLive(caller gozzard.Caller) (*live.View, error) {
	if a.Live == nil {
		return nil, gozzard.Errorf(gozzard.ErrUnavailable, "this server has no live data")
	}
	return a.Live.Join(caller.Rights)
}

// expectViewer lets the snapshot of a caller be made while its page is loading. A page that is loaded already does not
// read the snapshot again.
func (a *api) expectViewer(r *http.Request, caller gozzard.Caller) {
	if a.Live != nil && r.Header.Get(idleHeader) == "" {
		a.Live.Expect(caller.Rights)
	}
}

// getLiveSnapshot answers with all rows that the caller may see.
func (a *api) getLiveSnapshot(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Take the snapshot.
	if _, err := a.readQuery(r); err != nil {
		return err
	}
	view, err := a.joinLive(caller)
	if err != nil {
		return err
	}
	defer view.Close()
	data, err := view.Snapshot()
	if err != nil {
		return err
	}

	// Answer with it.
	h := w.Header()
	h.Set("Content-Type", liveType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	body := io.Reader(bytes.NewReader(data))
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		h.Set("Content-Length", strconv.Itoa(len(data)))
	} else if body, err = gzip.NewReader(body); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil
	}
	if err := sendParts(w, body); err != nil {
		a.Log.DebugContext(r.Context(), "live snapshot was not read to its end", "err", err)
	}
	return nil
}

// acceptsGzip reports whether an answer may be compressed.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, weighed := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return !weighed || strings.Trim(strings.TrimSpace(weight), "q=0.") != ""
		}
	}
	return false
}

// sendParts writes a long answer. Each part has its own time limit, so that a slow client gets all of it and one that
// reads nothing is disconnected.
func sendParts(w http.ResponseWriter, body io.Reader) error {
	control := http.NewResponseController(w)
	buf := make([]byte, livePart)
	for {
		n, err := io.ReadFull(body, buf)
		if n > 0 {
			limit := control.SetWriteDeadline(time.Now().Add(streamStall))
			if limit != nil && !errors.Is(limit, http.ErrNotSupported) {
				return limit
			}
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}

		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// postLiveRows answers with the details of rows.
func (a *api) postLiveRows(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the request.
	var req client.LiveRowsRequest
	if err := readValue(w, r, liveRowsK, &req); err != nil {
		return err
	}
	if len(req.IDs) > client.MaxLiveRows {
		return gozzard.Errorf(gozzard.ErrInvalid, "ids: %d are given, at most %d are allowed", len(req.IDs),
			client.MaxLiveRows)
	}

	// Find the rows.
	view, err := a.joinLive(caller)
	if err != nil {
		return err
	}
	defer view.Close()
	rows, ids, ok := view.Rows(req.Epoch, req.IDs)
	if !ok {
		return otherEpoch()
	}

	say := said(r)
	out := client.LiveRows{Rows: []client.LiveDetail{}}
	for i := range rows {
		p := renderProcess(&rows[i])
		sayProcess(say, &p)
		out.Rows = append(out.Rows, client.LiveDetail{ID: ids[i], Process: p})
	}
	return answer(w, http.StatusOK, out)
}
