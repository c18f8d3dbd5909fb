package client

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
)

// LiveRowsRequest asks for the details of processes.
type LiveRowsRequest struct {
	Epoch string   `json:"epoch"` // of the snapshot that has the ids
	IDs   []uint32 `json:"ids"`   // at most MaxLiveRows
}

// MaxLiveRows is the largest number of ids in a LiveRowsRequest.
const MaxLiveRows = 500

// LiveRows is the details of processes.
type LiveRows struct {
	Rows []LiveDetail `json:"rows"`
}

// LiveDetail is a process with its id in a snapshot.
type LiveDetail struct {
	ID uint32 `json:"id"`
	Process
}

// LiveEvent is one event of the live stream. One of its lists is set.
type LiveEvent struct {
	Batch  *LiveBatch
	Events []Event
	Tasks  []TaskSummary
}

func (e *LiveEvent) empty() bool { return e.Batch == nil && len(e.Events)+len(e.Tasks) == 0 }

// ErrResnapshot ends FollowLive: the table needs a new snapshot.
var ErrResnapshot = errors.New("the changes cannot be continued: read a new snapshot")

// maxLiveLine is the longest line of a live stream, in bytes.
const maxLiveLine = 64 << 20

// LiveSnapshot reads all processes that the caller may see.
func (c *Client) LiveSnapshot(ctx context.Context) (*LiveTable, error) {
	res, err := c.open(ctx, "/api/v1/live/snapshot", func(h http.Header) { h.Set("Accept-Encoding", "gzip") })
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()

	body := io.Reader(res.Body)
	if res.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(res.Body); err != nil {
			return nil, c.transportError(ctx, err)
		}
	}
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer))
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	return ParseLiveSnapshot(data)
}

// LiveRows reads the details of processes of a snapshot.
func (c *Client) LiveRows(ctx context.Context, epoch string, ids []uint32) (LiveRows, error) {
	var out LiveRows
	err := c.write(ctx, http.MethodPost, "/api/v1/live/rows", LiveRowsRequest{Epoch: epoch, IDs: ids}, &out)
	return out, err
}

// LiveMatch finds the ids of processes that an expression selects, in one business or, if biz is 0, in all.
func (c *Client) LiveMatch(ctx context.Context, epoch, expression string, biz int) ([]uint32, error) {
	v := url.Values{"epoch": {epoch}, "expression": {expression}}
	if biz != 0 {
		v.Set("biz", strconv.Itoa(biz))
	}
	res, err := c.open(ctx, "/api/v1/live/match?"+v.Encode(), func(http.Header) {})
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, c.transportError(ctx, err)
	}

	ids := make([]uint32, len(data)/4)
	for i := range ids {
		ids[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return ids, nil
}

// FollowLive iterates over what changes behind a snapshot, until ctx ends or the connection breaks. It applies batches
// to the table. After an error the caller may follow again with the same table, after ErrResnapshot with a new one.
func (c *Client) FollowLive(ctx context.Context, t *LiveTable) iter.Seq2[LiveEvent, error] {
	return func(yield func(LiveEvent, error) bool) {
		v := url.Values{"epoch": {t.Epoch}, "after": {strconv.FormatUint(t.Seq, 10)}}
		res, err := c.open(ctx, "/api/v1/live/stream?"+v.Encode(), func(h http.Header) { h.Set("Accept", "text/event-stream") })
		if err != nil {
			yield(LiveEvent{}, err)
			return
		}
		defer res.Body.Close()
		if err := t.read(res.Body, yield); err != nil && ctx.Err() == nil {
			if !errors.Is(err, ErrResnapshot) && !errors.Is(err, errLive) {
				err = c.transportError(ctx, err)
			}
			yield(LiveEvent{}, err)
		}
	}
}

// open sends a request whose answer is read as it comes.
func (c *Client) open(ctx context.Context, path string, set func(http.Header)) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.String()+path, nil)
	if err != nil {
		return nil, err
	}
	c.authorize(req)
	set(req.Header)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportError(ctx, err)
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // an error without a body has the kind of its status
		return nil, errorOf(res.StatusCode, answer)
	}
	return res, nil
}

// read applies the events of a stream until it ends. It returns nil if the caller stops the iteration.
func (t *LiveTable) read(body io.Reader, yield func(LiveEvent, error) bool) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxLiveLine)
	kind := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		if field == "event" {
			kind = value
		}
		if field != "data" {
			continue
		}

		e, err := t.take(kind, []byte(value))
		if err != nil {
			return err
		}
		if e.empty() {
			continue // it only shows that the connection is open, or is of a later version
		}
		if !yield(e, nil) {
			return nil
		}
	}

	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// take reads one event and applies it if it is a batch.
func (t *LiveTable) take(kind string, data []byte) (e LiveEvent, err error) {
	switch kind {
	case "changes":
		e.Batch = new(LiveBatch)
		if err = json.Unmarshal(data, e.Batch); err == nil {
			err = t.Apply(e.Batch)
		}
	case "events":
		err = json.Unmarshal(data, &e.Events)
	case "tasks":
		err = json.Unmarshal(data, &e.Tasks)
	case "resnapshot":
		err = ErrResnapshot
	case "bye":
		err = gozzard.Errorf(gozzard.ErrUnauthenticated, "the session has ended: log in again")
	}
	return e, err
}
