package api

import (
	"net/http"
	"slices"

	"github.com/gozzard/gozzard"
)

// Route is one entry of the route table: what a caller must know of a method on a path.
type Route struct {
	Owner   string // the door that serves it, always Door
	Method  string
	Path    string // {name} stands for one part
	Access  Access
	Summary string // one sentence

	Parameters []Parameter
	Body       Body // of the request
	Answers    []Answer
	Errors     []gozzard.ErrorKind // beside those that every route of its access has, see ErrorKinds

	serve handler
}

// handler serves a route. What it returns as an error becomes the answer.
type handler func(a *api, w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error

// The places of a parameter.
const (
	InPath   = "path"
	InQuery  = "query"
	InHeader = "header"
)

// ParameterType is the type of a parameter's value.
type ParameterType string

// The types, by the words of JSON Schema.
const (
	TypeText   ParameterType = "string"
	TypeNumber ParameterType = "integer"
	TypeFlag   ParameterType = "boolean"
)

// Parameter is a value in the path, the query or a header of a request.
type Parameter struct {
	In       string
	Name     string
	Type     ParameterType
	Meaning  string // one sentence
	Required bool
	Repeated bool     // it may be given several times
	Words    []string // the values that it may have; nil: any
}

// Body is the body of a request. The zero value means that the route reads none.
type Body struct {
	Value any      // of the type that the body has; nil: bytes without a type
	Kinds []string // media types; empty: JSON
}

// Given reports whether the route reads a body.
func (b Body) Given() bool { return b.Value != nil || len(b.Kinds) > 0 }

// Answer is what a route answers when a request succeeds.
type Answer struct {
	Status  int
	Meaning string   // one sentence
	Value   any      // of the type that the body has; nil: bytes without a type, or no body
	Kinds   []string // media types; empty: JSON if there is a value, else no body
}

// Open reports whether some callers need no credentials.
func (r *Route) Open() bool { return r.Access == AccessOpen || r.Access == AccessLocal }

// ErrorKinds lists the kinds of errors that the route can answer with.
func (r *Route) ErrorKinds() []gozzard.ErrorKind {
	kinds := []gozzard.ErrorKind{gozzard.ErrRateLimited, gozzard.ErrUnavailable, gozzard.ErrInternal}

	switch r.Access {
	case AccessHost:
		kinds = append(kinds, gozzard.ErrUnauthenticated)
	case AccessCaller, AccessAdmin, AccessLocal:
		kinds = append(kinds, gozzard.ErrUnauthenticated, gozzard.ErrOperatorRequired, gozzard.ErrUserForbidden,
			gozzard.ErrAppForbidden)
	}

	if len(r.Parameters) > 0 || r.Body.Given() {
		kinds = append(kinds, gozzard.ErrInvalid)
	}

	for _, kind := range r.Errors {
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}

	return kinds
}

// query lists the names of the query parameters.
func (r *Route) query() []string {
	var names []string
	for _, p := range r.Parameters {
		if p.In == InQuery {
			names = append(names, p.Name)
		}
	}
	return names
}

// Routes is the route table: everything that the API serves.
func Routes() []Route {
	table := slices.Concat(operationRoutes(), fileRoutes(), configRoutes(), fleetRoutes(), liveRoutes(), topologyRoutes(), enrolRoutes(), releaseRoutes(),
		appRoutes(), userRoutes(), loginRoutes(), sessionRoutes(), keyRoutes(), requestRoutes(), serverRoutes(), serverStateRoutes(), serverJoinRoutes(),
		relayRoutes(), notifyRoutes())
	for i := range table {
		table[i].Owner = Door
	}
	return table
}

// The functions below keep the tables short.

func inPath(name, meaning string) Parameter {
	return Parameter{In: InPath, Name: name, Type: TypeText, Meaning: meaning, Required: true}
}

func inHeader(name, meaning string) Parameter {
	return Parameter{In: InHeader, Name: name, Type: TypeText, Meaning: meaning}
}

func text(name, meaning string) Parameter {
	return Parameter{In: InQuery, Name: name, Type: TypeText, Meaning: meaning}
}

func requiredText(name, meaning string) Parameter {
	return Parameter{In: InQuery, Name: name, Type: TypeText, Meaning: meaning, Required: true}
}

func texts(name, meaning string) Parameter {
	return Parameter{In: InQuery, Name: name, Type: TypeText, Meaning: meaning, Repeated: true}
}

func number(name, meaning string) Parameter {
	return Parameter{In: InQuery, Name: name, Type: TypeNumber, Meaning: meaning}
}

func numbers(name, meaning string) Parameter {
	return Parameter{In: InQuery, Name: name, Type: TypeNumber, Meaning: meaning, Repeated: true}
}

func flag(name, meaning string) Parameter {
	return Parameter{In: InQuery, Name: name, Type: TypeFlag, Meaning: meaning}
}

// oneOf limits a parameter to some words.
func oneOf(p Parameter, words []string) Parameter {
	p.Words = words
	return p
}

// pageParams are the parameters of a route that answers page by page.
func pageParams() []Parameter {
	return []Parameter{
		number("start", "How many rows to skip; 0 when missing."),
		number("limit", "The largest number of rows in the answer, from 1 to 1000; 100 when missing."),
	}
}

func jsonBody(v any) Body { return Body{Value: v} }

func answers(status int, v any, meaning string) []Answer {
	return []Answer{{Status: status, Value: v, Meaning: meaning}}
}

// nothing is the answer to a change that has no result: an empty JSON object.
func nothing(status int) []Answer { return answers(status, struct{}{}, "The change is recorded.") }
