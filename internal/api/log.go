package api

import (
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

// The number of lines in one answer.
const (
	defaultLines = 100
	maxLines     = 10_000
)

// getLog reads the output of one process on one host, through its agent.
func (a *api) getLog(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}

	// Read the process and the host.
	key := q.key()
	target := a.targetOf(q, q.one("host"), caller)

	// Read the part of the log.
	query := gozzard.LogQuery{Key: key, Lines: q.number("lines", defaultLines, 1, maxLines),
		Offset: int64(q.number("offset", -1, 0, math.MaxInt))}
	if err := q.faults.Err(); err != nil {
		return err
	}

	// Ask the agent.
	chunk, err := a.Plane.Log(r.Context(), caller, target, query)
	if err != nil {
		return err
	}

	data := wholeRunes(chunk.Data)
	return answer(w, http.StatusOK, client.LogChunk{
		Text: strings.ToValidUTF8(string(data), "\uFFFD"), Offset: chunk.Offset,
		Next: chunk.Next - int64(len(chunk.Data)-len(data)),
	})
}

// wholeRunes leaves out a character that is cut off at the end. The next part will have it.
func wholeRunes(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n < len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// key reads the process that a query names.
func (q *query) key() gozzard.Key {
	key := gozzard.Key{Namespace: q.one("namespace"), Name: q.one("name")}
	for _, f := range [][2]string{{"namespace", key.Namespace}, {"name", key.Name}} {
		if fault := checkName(f[1]); fault != "" {
			q.faults.Add(f[0], "%s", fault)
		}
	}
	return key
}

// targetOf reads the host that a query names.
func (a *api) targetOf(q *query, host string, caller gozzard.Caller) (target gozzard.Target) {
	if host == "" {
		q.faults.Add("host", "required: cloud:ip, an IP address, a host name or an agent id")
		return target
	}
	clouds := cloudFinder{plane: a.Plane, caller: caller}
	target, err := parseHost(host, &clouds)
	if err != nil {
		q.faults.Add("host", "%s", err)
	}
	return target
}
