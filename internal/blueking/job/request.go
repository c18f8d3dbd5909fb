package job

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// request is one call that is being read.
type request struct {
	s      *server
	c      *blueking.Call
	form   form
	broken int // number of faults against Job's rules
}

// violate adds a fault against one of Job's rules.
func (r *request) violate(v *strictjson.Value, format string, args ...any) {
	v.Fault(format, args...)
	r.broken++
}

// err is all faults as one error, nil if there are none.
func (r *request) err() error {
	err := r.c.Faults.Err()
	if err != nil && r.c.Faults.Len() == r.broken {
		return &violation{err}
	}
	return err
}

// required reports whether a field has a text that is not blank, and adds a fault if not.
func (r *request) required(v strictjson.Value) bool {
	switch {
	case !v.Given() && v.Exists():
		r.violate(&v, "required, is null")
	case !v.Given():
		r.violate(&v, "required")
	case !v.IsString():
		v.AnyStr() // adds the fault
	case strings.TrimSpace(v.AnyStr()) == "":
		r.violate(&v, "required, is blank")
	default:
		return true
	}
	return false
}

// business reads bk_biz_id, or the scope that newer callers send instead of it.
func (r *request) business() int64 {
	biz, kind, scope := r.c.Body.Get("bk_biz_id"), r.c.Body.Get("bk_scope_type"), r.c.Body.Get("bk_scope_id")
	if !kind.Given() && !scope.Given() {
		return r.id(&biz, r.c.Request.Method == http.MethodGet)
	}
	if word := kind.OptStr(); word != "biz" && (kind.IsString() || !kind.Given()) {
		kind.Fault("must be biz, is %.40q", word)
	}

	id := r.id(&scope, true)

	if !biz.Given() {
		return id
	}
	if old := r.id(&biz, r.c.Request.Method == http.MethodGet); old != id && old > 0 && id > 0 {
		scope.Fault("is %d, bk_biz_id is %d: send one of them", id, old)
	}

	return id
}

// id reads the id of a business, which is text in a scope and in query parameters.
func (r *request) id(v *strictjson.Value, text bool) int64 {
	const most = 1<<53 - 1 // the largest number that every client reads exactly

	if text && v.IsString() {
		n, err := strconv.ParseInt(v.AnyStr(), 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != v.AnyStr() || n <= 0 || n > most {
			r.violate(v, "must be the number of a business, is %.40q", v.AnyStr())
			return 0
		}
		return n
	}

	switch {
	case !v.Given() && v.Exists():
		r.violate(v, "required, is null")
		return 0
	case !v.Given():
		r.violate(v, "required")
		return 0
	}

	before := r.c.Faults.Len()
	n := v.Int(-most, most)
	if r.c.Faults.Len() == before && n <= 0 {
		r.violate(v, "must be the number of a business, is %d", n)
	}

	return n
}
