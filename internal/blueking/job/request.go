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
	broken int  // number of faults against Job's rules
	oldest bool // it has names of fields from before version 2
}

// get reads a field by its name, or by the one that it had before version 2: some clients send those to the calls of
// today.
func (r *request) get(in *strictjson.Value, name, before string) strictjson.Value {
	now, then := in.Get(name), in.Get(before)
	if !now.Given() && then.Given() {
		r.oldest = true
		return then
	}
	return now
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

// owner is the business, or the set of businesses, that processes belong to. Both have numbers of their own.
type owner struct {
	id  int64
	set bool // of businesses
}

// namespace is the namespace of the processes of an owner.
func (o owner) namespace() string {
	if o.set {
		return "JOB_BIZ_SET_" + strconv.FormatInt(o.id, 10)
	}
	return "JOB_BIZ_" + strconv.FormatInt(o.id, 10)
}

// business reads bk_biz_id, or the scope that newer callers send instead of it.
func (r *request) business() owner {
	biz, kind, scope := r.get(&r.c.Body, "bk_biz_id", "app_id"), r.c.Body.Get("bk_scope_type"), r.c.Body.Get("bk_scope_id")
	asText := r.oldest || r.c.Request.Method == http.MethodGet
	if !kind.Given() && !scope.Given() {
		return owner{id: r.id(&biz, asText)}
	}

	word := kind.OptStr()
	if word != "biz" && word != "biz_set" && (kind.IsString() || !kind.Given()) {
		kind.Fault("must be biz or biz_set, is %.40q", word)
	}
	o := owner{id: r.id(&scope, true), set: word == "biz_set"}

	if !biz.Given() || o.set { // some callers send the set's number, or 0, as that of a business
		return o
	}
	if old := r.id(&biz, asText); old != o.id && old > 0 && o.id > 0 {
		scope.Fault("is %d, bk_biz_id is %d: send one of them", o.id, old)
	}

	return o
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
