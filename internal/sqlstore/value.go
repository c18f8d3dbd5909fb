package sqlstore

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/taskname"
)

// Values as the record has them.

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// counter keeps what agents count (sessions, journal positions) inside the integers of SQL, in order. Only a
// hostile agent is ever cut off.
func counter(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// text makes a text that both databases take: PostgreSQL refuses NUL and what is not UTF-8.
func text(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func ipText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func hostAddr(cloud int64, ip string) (gozzard.HostAddr, error) {
	a := gozzard.HostAddr{Cloud: int(cloud)}
	if ip == "" {
		return a, nil
	}
	var err error
	a.IP, err = netip.ParseAddr(ip)
	return a, err
}

func labelsText(labels map[string]string) (string, error) {
	if labels == nil {
		return "", nil
	}
	b, err := json.Marshal(labels) // keys sorted: equal labels are equal texts
	return string(b), err
}

// labelCache spares encoding the labels that attempts of one item share, again and again.
type labelCache struct {
	last uintptr
	made string
}

func (c *labelCache) text(labels map[string]string) (s string, err error) {
	at := reflect.ValueOf(labels).Pointer()
	if labels != nil && at == c.last {
		return c.made, nil
	}
	if s, err = labelsText(labels); err == nil {
		c.last, c.made = at, s
	}
	return s, err
}

func fromLabels(s string) (map[string]string, error) {
	if s == "" {
		return nil, nil
	}
	var m map[string]string
	return m, json.Unmarshal([]byte(s), &m)
}

func outcomeText(o gozzard.Outcome) (string, error) {
	if o == (gozzard.Outcome{}) {
		return "", nil
	}
	b, err := json.Marshal(o)
	if err != nil { // a number that is none
		return "", fmt.Errorf("cannot encode an outcome: %w", err)
	}
	return string(b), nil
}

func fromOutcome(s string) (o gozzard.Outcome, err error) {
	if s == "" {
		return o, nil
	}
	return o, json.Unmarshal([]byte(s), &o)
}

// outcomeCache spares encoding or reading again what attempts of one task mostly share.
type outcomeCache struct {
	outcome gozzard.Outcome
	made    string
}

func (c *outcomeCache) text(o gozzard.Outcome) (s string, err error) {
	if o == c.outcome && c.made != "" { // a detail is equal only to itself
		return c.made, nil
	}
	if s, err = outcomeText(o); err == nil {
		c.outcome, c.made = o, s
	}
	return s, err
}

func (c *outcomeCache) read(s string) (o gozzard.Outcome, err error) {
	if s == c.made && c.outcome.Detail == nil { // details are not shared
		return c.outcome, nil
	}
	if o, err = fromOutcome(s); err == nil {
		c.outcome, c.made = o, s
	}
	return o, err
}

func journalID(id [16]byte) string { return hex.EncodeToString(id[:]) }

func fromJournalID(s string) (id [16]byte, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is not a journal id", s)
	}
	copy(id[:], b)
	return id, nil
}

// taskID reads a task's name.
type taskID gozzard.TaskID

// Scan implements sql.Scanner.
func (id *taskID) Scan(v any) error {
	var name sql.NullString
	if err := name.Scan(v); err != nil {
		return err
	}
	*id = taskID(taskname.Parse(name.String))
	return nil
}

// stamp reads a time.
type stamp time.Time

// Scan implements sql.Scanner.
func (s *stamp) Scan(v any) error {
	ms, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T is not a time of the record", v)
	}
	*s = stamp(fromMillis(ms))
	return nil
}
