package api

import (
	"math"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
)

// Bounds of one answer about a log.
const (
	defaultLines = 100
	maxLines     = 10_000
)

type logBody struct {
	Text   string `json:"text"`   // valid UTF-8; bytes that are not are replaced
	Offset int64  `json:"offset"` // of the text, in bytes since the log began
	Next   int64  `json:"next"`   // where to go on
}

// getLog reads what one process on one host printed, through its agent.
func (a *api) getLog(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	q, err := readQuery(r, "namespace", "name", "host", "lines", "offset")
	if err != nil {
		return err
	}

	key := gozzard.Key{Namespace: q.one("namespace"), Name: q.one("name")}
	for field, s := range map[string]string{"namespace": key.Namespace, "name": key.Name} {
		if fault := checkName(s); fault != "" {
			q.faults.Add(field, "%s", fault)
		}
	}

	var target gozzard.Target
	clouds := cloudFinder{plane: a.Plane, caller: caller}

	if s := q.one("host"); s == "" {
		q.faults.Add("host", "required: cloud:ip, an address, or an agent id")
	} else if target, err = parseHost(s, &clouds); err != nil {
		q.faults.Add("host", "%s", err)
	}

	query := gozzard.LogQuery{Key: key, Lines: q.number("lines", defaultLines, 1, maxLines),
		Offset: int64(q.number("offset", -1, 0, math.MaxInt))}

	if err := q.faults.Err(); err != nil {
		return err
	}

	chunk, err := a.Plane.Log(r.Context(), caller, target, query)
	if err != nil {
		return err
	}

	data := wholeRunes(chunk.Data)
	return answer(w, http.StatusOK, logBody{
		Text: strings.ToValidUTF8(string(data), "\uFFFD"), Offset: chunk.Offset,
		Next: chunk.Next - int64(len(chunk.Data)-len(data)),
	})
}

// wholeRunes leaves out a character that is cut off at the end: it comes with the next part.
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
