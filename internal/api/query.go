package api

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
	"github.com/gozzard/gozzard/internal/suggest"
	"github.com/gozzard/gozzard/internal/topology"
)

// The sizes of a page.
const (
	defaultPage = 100
	maxPage     = 1000
)

// query reads the query parameters of a request and collects their faults.
type query struct {
	values url.Values
	faults *strictjson.Faults
}

// readQuery parses the query of a request. A parameter that the route table does not have is a fault.
func (a *api) readQuery(r *http.Request) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "the query string is malformed")
	}

	q := &query{values: values, faults: new(strictjson.Faults)}
	known := a.query[tableMethod(r)+" "+r.Pattern]
	for name := range values {
		if !slices.Contains(known, name) {
			q.faults.Add(strings.ToValidUTF8(name, "\uFFFD"), "%s", suggest.Unknown(name, known))
		}
	}

	return q, nil
}

// noQuery rejects every query parameter.
func (a *api) noQuery(r *http.Request) error {
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	return q.faults.Err()
}

// one is the value of a parameter that may be given once, "" if it is missing.
func (q *query) one(name string) string {
	v := q.values[name]
	if len(v) > 1 {
		q.faults.Add(name, "given %d times", len(v))
	}
	if len(v) == 0 {
		return ""
	}
	return v[0]
}

// number is a whole number from low to high, or the default.
func (q *query) number(name string, def, low, high int) int {
	s := q.one(name)
	if s == "" {
		if q.values.Has(name) {
			q.faults.Add(name, "required, is empty")
		}
		return def
	}

	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		q.faults.Add(name, "must be a whole number from %d to %d, is %q", low, high, clip(s))
		return def
	}

	return n
}

// page is the place and the size of a page.
func (q *query) page() (start, limit int) {
	return q.number("start", 0, 0, math.MaxInt32), q.number("limit", defaultPage, 1, maxPage)
}

// flag is true or false; false if it is missing.
func (q *query) flag(name string) bool {
	s := q.one(name)
	if s != "true" && s != "false" && q.values.Has(name) {
		q.faults.Add(name, `must be "true" or "false", is %q`, clip(s))
	}
	return s == "true"
}

// env is an environment; all of them if it is missing.
func (q *query) env() topology.Env {
	if !q.values.Has("env") {
		return topology.EnvAny
	}
	env, fault := parseEnv(q.one("env"))
	if fault != "" {
		q.faults.Add("env", "%s", fault)
	}
	return env
}

// each calls f for every value of a parameter that may be repeated. f returns the fault of the value, or "".
func (q *query) each(name string, f func(s string) string) {
	for i, s := range q.values[name] {
		path := name
		if len(q.values[name]) > 1 {
			path = fmt.Sprintf("%s[%d]", name, i)
		}
		if text := f(s); text != "" {
			q.faults.Add(path, "%s", text)
		}
	}
}

// patterns reads a parameter of names or patterns.
func (q *query) patterns(name string) (list []string) {
	q.each(name, func(s string) string {
		list = append(list, s)
		return checkPattern(s)
	})
	return list
}

// checkName returns the fault of a namespace or of the name of a process, or "".
func checkName(s string) string {
	if err := specjson.CheckProcessName(s); err != nil {
		return err.Error()
	}
	return ""
}

// checkPattern is checkName for names and for patterns with * and ?.
func checkPattern(s string) string {
	if !isPattern(s) {
		return checkName(s)
	}
	if len(s) > gozzard.MaxProcessNameBytes {
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), gozzard.MaxProcessNameBytes)
	}
	for _, r := range s {
		if r != '?' && gozzard.ValidateProcessName("x"+string(r)+"x") != nil {
			return fmt.Sprintf("%q is not allowed in a pattern "+
				"(what a name may have; * for any text, ? for one character)", r)
		}
	}
	return ""
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?") }

const maxQuoted = 64

// clip shortens a caller's text for an error message.
func clip(s string) string {
	if len(s) <= maxQuoted {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
}
