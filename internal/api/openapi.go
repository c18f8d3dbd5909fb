package api

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"path"
	"reflect"
	"strconv"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/openapi"
	"github.com/gozzard/gozzard/internal/specjson"
)

// descriptions are the doc comments of the types in the document, which reflection does not have. A test writes the
// file from the source.
//
//go:embed descriptions.json
var descriptions []byte

// The names of the credentials in the document.
const (
	securityApp    = "app"
	securityToken  = "token"
	securityCookie = "cookie"
	securityHost   = "host"
)

// OpenAPI makes the OpenAPI document of the route table. header is the header that carries the credentials of an app.
func OpenAPI(header string) []byte {
	doc := openapi.Document{OpenAPI: openapi.Version, Paths: make(map[string]openapi.Path),
		Info: openapi.Info{Title: "Gozzard", Version: "1",
			Description: "The API of a Gozzard server. Requests are read strictly: unknown fields and parameters are " +
				"errors. Every error is an ErrorAnswer, whose kind says what the caller can do."}}

	// Add every route.
	schemas := &openapi.Schemas{Describe: describer(), Words: wordsOf,
		Plain: []string{reflect.TypeFor[client.Task]().PkgPath(), reflect.TypeFor[gozzard.Task]().PkgPath()}}
	for _, rt := range Routes() {
		if doc.Paths[rt.Path] == nil {
			doc.Paths[rt.Path] = make(openapi.Path)
		}
		doc.Paths[rt.Path][strings.ToLower(rt.Method)] = operation(&rt, schemas)
	}

	// Add what they refer to. The events of a stream are in no body, but readers need their schema.
	schemas.Of(reflect.TypeFor[client.Event]())
	doc.Components.Responses = errorResponses(schemas)
	doc.Components.SecuritySchemes = map[string]openapi.SecurityScheme{
		securityApp: {Type: "apiKey", In: "header", Name: header,
			Description: "The credentials of an app, as a JSON object."},
		securityToken: {Type: "http", Scheme: "bearer", Description: "The token of a user."},
		securityCookie: {Type: "apiKey", In: "cookie", Name: secureCookie,
			Description: "A session of the console; without TLS the name is gozzard_PORT. Changes need the header " + csrfHeader + "."},
		securityHost: {Type: "mutualTLS", Description: "The certificate of an enrolled host."},
	}
	doc.Components.Schemas = schemas.Named

	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic("cannot encode the OpenAPI document: " + err.Error()) // its parts are constants of this program
	}
	return append(text, '\n')
}

// getOpenAPI answers the OpenAPI document.
func (a *api) getOpenAPI(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	send(w, http.StatusOK, a.document())
	return nil
}

// getDefinitionSchema answers the JSON Schema of the documents that register a process.
func (a *api) getDefinitionSchema(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	send(w, http.StatusOK, specjson.Schema())
	return nil
}

// describer returns the descriptions of types and fields.
func describer() func(t reflect.Type, field string) string {
	var texts map[string]string
	if err := json.Unmarshal(descriptions, &texts); err != nil {
		panic("descriptions.json is not JSON: " + err.Error()) // it is part of this program
	}
	return func(t reflect.Type, field string) string {
		key := path.Base(t.PkgPath()) + "." + t.Name()
		if field != "" {
			key += "." + field
		}
		return texts[key]
	}
}

// wordsOf lists the values of types that have only some.
func wordsOf(t reflect.Type) []string {
	if t == reflect.TypeFor[gozzard.EventKind]() {
		return eventKinds()
	}
	return nil
}

// operation describes one route.
func operation(rt *Route, schemas *openapi.Schemas) *openapi.Operation {
	op := &openapi.Operation{ID: operationID(rt), Summary: rt.Summary, Tags: []string{tag(rt.Path)},
		Security: security(rt.Access), Responses: make(map[string]openapi.Response)}

	for _, p := range rt.Parameters {
		schema := &openapi.Schema{Type: openapi.Type(p.Type), Enum: p.Words}
		if p.Repeated {
			schema = &openapi.Schema{Type: "array", Items: schema}
		}
		op.Parameters = append(op.Parameters, openapi.Parameter{Name: p.Name, In: p.In, Description: p.Meaning,
			Required: p.Required, Schema: schema})
	}

	if rt.Body.Given() {
		op.Body = &openapi.Body{Required: true, Content: content(rt.Body.Value, rt.Body.Kinds, schemas)}
	}

	for _, kind := range rt.ErrorKinds() {
		status := strconv.Itoa(statusOf(kind))
		op.Responses[status] = openapi.Response{Ref: "#/components/responses/" + errorName(status)}
	}
	for _, a := range rt.Answers {
		op.Responses[strconv.Itoa(a.Status)] = openapi.Response{Description: a.Meaning,
			Content: content(a.Value, a.Kinds, schemas)}
	}

	return op
}

// content describes a body: of each of the media types, or of JSON if there are none.
func content(value any, kinds []string, schemas *openapi.Schemas) map[string]openapi.Media {
	var schema *openapi.Schema
	if value != nil {
		schema = schemas.Of(reflect.TypeOf(value))
		if len(kinds) == 0 {
			kinds = []string{"application/json"}
		}
	}

	out := make(map[string]openapi.Media)
	for _, kind := range kinds {
		out[kind] = openapi.Media{Schema: schema}
	}
	return out
}

// errorResponses describes the error answers: one for each HTTP status, with the kinds that have it.
func errorResponses(schemas *openapi.Schemas) map[string]openapi.Response {
	body := content(client.ErrorAnswer{}, nil, schemas)
	out := make(map[string]openapi.Response)
	for _, kind := range errorKinds() {
		name := errorName(strconv.Itoa(statusOf(kind)))
		text := "An error of the kind " + string(kind)
		if before := out[name].Description; before != "" {
			text = strings.TrimSuffix(before, ".") + " or " + string(kind)
		}
		out[name] = openapi.Response{Description: text + ".", Content: body}
	}
	return out
}

// errorName names the error answer of an HTTP status.
func errorName(status string) string { return "Error" + status }

func errorKinds() []gozzard.ErrorKind {
	return []gozzard.ErrorKind{gozzard.ErrInvalid, gozzard.ErrUnauthenticated, gozzard.ErrCodeRequired, gozzard.ErrOperatorRequired,
		gozzard.ErrUserForbidden, gozzard.ErrAppForbidden, gozzard.ErrNotFound, gozzard.ErrConflict,
		gozzard.ErrRateLimited, gozzard.ErrStorageFull, gozzard.ErrUnavailable, gozzard.ErrInternal}
}

// security lists the credentials that a kind of access accepts. None means that no credentials are needed.
func security(a Access) []map[string][]string {
	app, token := map[string][]string{securityApp: {}}, map[string][]string{securityToken: {}}
	cookie := map[string][]string{securityCookie: {}}
	switch a {
	case AccessOpen:
		return []map[string][]string{}
	case AccessHost:
		return []map[string][]string{{securityHost: {}}, {}} // {}: a host that enrols has only the token in the body
	case AccessLocal:
		return []map[string][]string{app, token, cookie, {}} // {}: from the server's own machine
	}
	return []map[string][]string{app, token, cookie}
}

// operationID names a route, such as getTopologyTree.
func operationID(rt *Route) string {
	id := strings.ToLower(rt.Method)
	for part := range strings.FieldsFuncSeq(strings.TrimPrefix(rt.Path, "/api/v1"), func(r rune) bool {
		return r == '/' || r == '.'
	}) {
		part, variable := strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
		if variable {
			id += "By"
		}
		id += strings.ToUpper(part[:1]) + part[1:]
	}
	return id
}

// tag groups routes by the first part of their path.
func tag(path string) string {
	rest, native := strings.CutPrefix(path, "/api/v1/")
	if !native {
		rest = strings.TrimPrefix(path, "/")
	}
	first, _, _ := strings.Cut(rest, "/")
	switch first {
	case "healthz", "readyz", "metrics", "openapi.json":
		return "server"
	}
	return first
}
