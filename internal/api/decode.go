package api

import (
	"errors"
	"fmt"
	"io"
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

// maxBody bounds a request of one caller.
const maxBody = 4 << 20

// maxList bounds every list of names or hosts in a request.
const maxList = 100_000

// readBody reads the whole body of a request whose caller is known.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readUpTo(w, r, maxBody)
}

// readLongBody is readBody for documents of a whole business.
func readLongBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return readUpTo(w, r, topology.MaxDocument)
}

func readUpTo(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "Content-Encoding is not accepted: send the body as it is")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "body has more than %d MiB", long.Limit>>20)
	case err != nil:
		return nil, &gozzard.Error{Kind: gozzard.ErrInvalid, Message: "body could not be read to its end", Cause: err}
	}
	return body, nil
}

// readObject parses a body that must be one strict JSON object.
func readObject(body []byte, f *strictjson.Faults) (strictjson.Value, error) {
	doc, err := strictjson.Parse(body)
	if err != nil {
		return strictjson.Value{}, err
	}
	return doc.Root(f)
}

// checkName tells what is wrong with a namespace, a name or a part of a label; "" when nothing is.
func checkName(s string) string {
	if err := specjson.CheckName(s); err != nil {
		return err.Error()
	}
	return ""
}

// checkGlob is checkName for patterns with * and ?.
func checkGlob(s string) string {
	if !isGlob(s) {
		return checkName(s)
	}
	if len(s) > gozzard.MaxNameBytes {
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), gozzard.MaxNameBytes)
	}
	for _, r := range s {
		if r != '*' && r != '?' && r != ' ' && gozzard.ValidateName("x"+string(r)) != nil {
			return fmt.Sprintf("%q may not stand in a pattern (letters, digits, _ - . @ + and blanks; * for any text, ? for one character)", r)
		}
	}
	return ""
}

func isGlob(s string) bool { return strings.ContainsAny(s, "*?") }

// query reads the parameters of a GET strictly: unknown names are refused, and names given twice where one is meant.
type query struct {
	values url.Values
	faults *strictjson.Faults
}

func readQuery(r *http.Request, known ...string) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, gozzard.Errorf(gozzard.ErrInvalid, "query string is malformed")
	}
	q := &query{values: values, faults: new(strictjson.Faults)}
	for name := range values {
		if !slices.Contains(known, name) {
			q.faults.Add(strings.ToValidUTF8(name, "\uFFFD"), "%s", suggest.Unknown(name, known))
		}
	}
	return q, nil
}

// one gives the only value of a parameter, "" when there is none.
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

// number is a whole number between bounds, or the default.
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

// flag is true or false; without it, false.
func (q *query) flag(name string) bool {
	s := q.one(name)
	if s != "true" && s != "false" && q.values.Has(name) {
		q.faults.Add(name, `must be "true" or "false", is %q`, clip(s))
	}
	return s == "true"
}

// env is an environment; without it, all.
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

// each calls f for every value of a parameter that may be repeated; what f returns is the value's fault.
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

// clip shortens what a caller sent to what a message can bear.
func clip(s string) string {
	return strings.ToValidUTF8(strictjson.Clip(s), "\uFFFD")
}
