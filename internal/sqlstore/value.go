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

// This file has the conversions between values of the program and values of the record.

// millis is a time as the record stores it: milliseconds since 1970, 0 for no time.
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

// counter converts what agents count (sessions, journal positions) to the integers of SQL, which are signed. It caps
// numbers above 2^63-1; only a hostile agent sends those.
func counter(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// text replaces what PostgreSQL rejects in a text: NUL, and bytes that are not UTF-8.
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
	b, err := json.Marshal(labels) // sorts the keys, so equal labels have equal texts
	return string(b), err
}

// labelCache remembers the last encoded labels: attempts of one item share one map.
type labelCache struct {
	last    uintptr // address of the last map
	encoded string
}

func (c *labelCache) text(labels map[string]string) (s string, err error) {
	at := reflect.ValueOf(labels).Pointer()
	if labels != nil && at == c.last {
		return c.encoded, nil
	}
	if s, err = labelsText(labels); err == nil {
		c.last, c.encoded = at, s
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
	if err != nil { // the detail has a number that is not finite
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

// outcomeCache remembers the last outcome and its encoding: most attempts of one task have the same.
type outcomeCache struct {
	outcome gozzard.Outcome
	encoded string
}

func (c *outcomeCache) text(o gozzard.Outcome) (s string, err error) {
	if o == c.outcome && c.encoded != "" { // details are pointers: one is equal only to itself
		return c.encoded, nil
	}
	if s, err = outcomeText(o); err == nil {
		c.outcome, c.encoded = o, s
	}
	return s, err
}

func (c *outcomeCache) read(s string) (o gozzard.Outcome, err error) {
	if s == c.encoded && c.outcome.Detail == nil && c.outcome.Script == nil { // attempts do not share details
		return c.outcome, nil
	}
	if o, err = fromOutcome(s); err == nil {
		c.outcome, c.encoded = o, s
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

// stamp reads a time from a row: see millis.
type stamp time.Time

// Scan implements sql.Scanner.
func (s *stamp) Scan(v any) error {
	ms, ok := v.(int64)
	if !ok {
		return fmt.Errorf("%T is not a time in milliseconds", v)
	}
	*s = stamp(fromMillis(ms))
	return nil
}
