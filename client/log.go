package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/gozzard/gozzard"
)

// LogChunk is a part of the output of a process.
type LogChunk struct {
	Text   string `json:"text"`   // valid UTF-8: other bytes are replaced
	Offset int64  `json:"offset"` // of the text, in bytes since the log began
	Next   int64  `json:"next"`   // offset of what follows
}

// Log reads the output of a process on one host: its last lines if the offset is below 0, else what follows the
// offset.
func (c *Client) Log(ctx context.Context, key gozzard.Key, host string, lines int, offset int64) (LogChunk, error) {
	v := url.Values{"namespace": {key.Namespace}, "name": {key.Name}, "host": {host}}
	if lines > 0 {
		v.Set("lines", strconv.Itoa(lines))
	}
	if offset >= 0 {
		v.Set("offset", strconv.FormatInt(offset, 10))
	}
	var out LogChunk
	err := c.get(ctx, "/api/v1/logs", v, &out)
	return out, err
}
