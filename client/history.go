package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
)

// History is what the agent of a host measured of a process and its descendants. Value i of a list is about the Step
// seconds that begin at From + i*Step. A value that was not measured is null: the process or the agent did not run, or the
// agent may not read it.
type History struct {
	Step     int64      `json:"step"`     // seconds
	From     int64      `json:"from"`     // Unix seconds
	CPU      []*float64 `json:"cpu"`      // percent of one processor core, the average
	Mem      []*int64   `json:"mem"`      // bytes of resident memory, the average
	FD       []*int64   `json:"fd"`       // open descriptors, the largest number
	Restarts []*int64   `json:"restarts"` // restarts without a request, their number
}

// History reads the measurements of a process on one host, at most so many points.
func (c *Client) History(ctx context.Context, key gozzard.Key, host string, from, to time.Time, points int) (History, error) {
	v := url.Values{"namespace": {key.Namespace}, "name": {key.Name}, "host": {host},
		"from": {strconv.FormatInt(from.Unix(), 10)}, "to": {strconv.FormatInt(to.Unix(), 10)},
		"points": {strconv.Itoa(points)}}
	var out History
	err := c.get(ctx, "/api/v1/history", v, &out)
	return out, err
}
