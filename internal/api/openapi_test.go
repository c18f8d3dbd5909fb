package api_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/blueking"
)

// TestOpenAPIFile compares docs/openapi.json with the document that the server serves.
func TestOpenAPIFile(t *testing.T) {
	compareFile(t, "../../docs/openapi.json", string(api.OpenAPI(blueking.AuthorizationHeader)))
}

// TestOpenAPIRoutes: the document has every route of the table and nothing else.
func TestOpenAPIRoutes(t *testing.T) {
	var want, got []string
	for _, rt := range api.Routes() {
		want = append(want, strings.ToLower(rt.Method)+" "+rt.Path)
	}
	for path, methods := range follow(parseOpenAPI(t), "paths").(node) {
		for method := range methods.(node) {
			got = append(got, method+" "+path)
		}
	}

	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the document has %q, want %q", got, want)
	}
}

// TestRouteTable: every entry of the table is complete.
func TestRouteTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, rt := range api.Routes() {
		name := rt.Method + " " + rt.Path
		if seen[name] {
			t.Errorf("%s is in the table twice", name)
		}
		seen[name] = true

		if rt.Owner != api.Door || rt.Access == 0 || len(rt.Answers) == 0 {
			t.Errorf("%s has the owner %q, the access %d and %d answers", name, rt.Owner, rt.Access, len(rt.Answers))
		}
		texts := []string{rt.Summary}
		for _, p := range rt.Parameters {
			texts = append(texts, p.Meaning)
		}
		for _, a := range rt.Answers {
			texts = append(texts, a.Meaning)
		}
		for _, text := range texts {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is not a sentence", name, text)
			}
		}
	}
}

// The keys that OpenAPI 3.1 allows in the objects that the document uses.
var allowedKeys = map[string][]string{
	"document":   {"openapi", "info", "paths", "components"},
	"info":       {"title", "description", "version"},
	"components": {"schemas", "responses", "securitySchemes"},
	"operation": {"operationId", "summary", "description", "tags", "parameters", "requestBody", "responses",
		"security"},
	"parameter": {"name", "in", "description", "required", "schema"},
	"body":      {"required", "content"},
	"response":  {"description", "content"},
	"media":     {"schema"},
	"schema": {"$ref", "type", "format", "contentEncoding", "description", "minimum", "pattern", "enum", "anyOf", "items",
		"properties", "required",
		"additionalProperties"},
	"security": {"type", "description", "name", "in", "scheme"},
}

// structure checks the parts of an OpenAPI document.
type structure struct {
	t   *testing.T
	doc node
	ids map[string]bool // of operations
}

// TestOpenAPIStructure checks the document by the rules of OpenAPI 3.1.
func TestOpenAPIStructure(t *testing.T) {
	doc := parseOpenAPI(t)
	s := &structure{t: t, doc: doc, ids: make(map[string]bool)}

	// Check the document and its components.
	s.keys("document", "the document", doc, "openapi", "info", "paths")
	s.keys("info", "info", doc["info"], "title", "version")
	if doc["openapi"] != "3.1.0" {
		t.Errorf("the document is of OpenAPI %v", doc["openapi"])
	}
	s.keys("components", "components", doc["components"])
	for name, schema := range follow(doc, "components", "schemas").(node) {
		s.schema("schema "+name, schema)
		if follow(schema, "description") == nil {
			t.Errorf("schema %s has no description", name)
		}
	}
	for name, response := range follow(doc, "components", "responses").(node) {
		s.response(name, response)
	}
	for name, scheme := range follow(doc, "components", "securitySchemes").(node) {
		s.keys("security", name, scheme, "type")
	}

	// Check every operation.
	for path, methods := range doc["paths"].(node) {
		if !strings.HasPrefix(path, "/") {
			t.Errorf("path %q does not begin with a slash", path)
		}
		for method, op := range methods.(node) {
			if !slices.Contains([]string{"get", "put", "post", "delete"}, method) {
				t.Errorf("%s has the method %s", path, method)
			}
			s.operation(method+" "+path, path, op.(node))
		}
	}
}

// keys checks that an object has only keys that are allowed in its kind, and all that are required.
func (s *structure) keys(kind, place string, object any, required ...string) {
	s.t.Helper()
	m, ok := object.(node)
	if !ok {
		s.t.Errorf("%s is not an object", place)
		return
	}
	for key := range m {
		if !slices.Contains(allowedKeys[kind], key) {
			s.t.Errorf("%s has the key %s", place, key)
		}
	}
	for _, key := range required {
		if m[key] == nil || m[key] == "" {
			s.t.Errorf("%s has no %s", place, key)
		}
	}
}

var pathVariable = regexp.MustCompile(`\{([a-z]+)\}`)

func (s *structure) operation(place, path string, op node) {
	s.keys("operation", place, op, "operationId", "summary", "responses", "security")
	id := fmt.Sprint(op["operationId"])
	if s.ids[id] {
		s.t.Errorf("%s has the operationId %s of another operation", place, id)
	}
	s.ids[id] = true

	// Check the parameters: exactly the variables of the path are in the path, and those are required.
	inPath := make(map[string]bool)
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		s.keys("parameter", place, p, "name", "in", "description", "schema")
		s.schema(place, follow(p, "schema"))
		if slices.Contains([]any{"Accept", "Content-Type", "Authorization"}, follow(p, "name")) {
			s.t.Errorf("%s has the parameter %v, which OpenAPI ignores", place, follow(p, "name"))
		}
		if follow(p, "in") == "path" {
			inPath[follow(p, "name").(string)] = follow(p, "required") == true
		}
	}
	variables := make(map[string]bool)
	for _, found := range pathVariable.FindAllStringSubmatch(path, -1) {
		variables[found[1]] = true
	}
	if !maps.Equal(inPath, variables) {
		s.t.Errorf("%s has the path parameters %v, required %v", place, variables, inPath)
	}

	// Check the bodies.
	if body, ok := op["requestBody"]; ok {
		s.keys("body", place, body, "content")
		s.content(place, follow(body, "content"))
	}
	for status, response := range op["responses"].(node) {
		if ref, ok := follow(response, "$ref").(string); ok {
			if resolve(s.doc, ref) == nil {
				s.t.Errorf("%s %s refers to %s, which does not exist", place, status, ref)
			}
			continue
		}
		s.response(place+" "+status, response)
	}

	// Check that the credentials exist.
	for _, need := range op["security"].([]any) {
		for name := range need.(node) {
			if follow(s.doc, "components", "securitySchemes", name) == nil {
				s.t.Errorf("%s needs the unknown credentials %s", place, name)
			}
		}
	}
}

func (s *structure) response(place string, response any) {
	s.keys("response", place, response, "description")
	s.content(place, follow(response, "content"))
}

func (s *structure) content(place string, content any) {
	if content == nil {
		return
	}
	for kind, media := range content.(node) {
		s.keys("media", place+" "+kind, media)
		if schema := follow(media, "schema"); schema != nil {
			s.schema(place, schema)
		}
	}
}

// schema checks a schema and everything in it. A reference must have a target.
func (s *structure) schema(place string, schema any) {
	s.keys("schema", place, schema)
	m, _ := schema.(node)

	if ref, ok := m["$ref"].(string); ok {
		if resolve(s.doc, ref) == nil {
			s.t.Errorf("%s refers to %s, which does not exist", place, ref)
		}
	}
	types := []any{"object", "array", "string", "integer", "number", "boolean"}
	typ, ok := m["type"]
	if list, several := typ.([]any); several && len(list) == 2 && list[1] == "null" {
		typ = list[0]
	}
	if ok && typ != "null" && !slices.Contains(types, typ) {
		s.t.Errorf("%s has the type %v", place, typ)
	}
	if form, ok := m["pattern"].(string); ok {
		if _, err := regexp.Compile(form); err != nil {
			s.t.Errorf("%s: %v", place, err)
		}
	}
	either, _ := m["anyOf"].([]any)
	for _, one := range either {
		s.schema(place, one)
	}
	if m["type"] == "array" && m["items"] == nil {
		s.t.Errorf("%s is a list of nothing", place)
	}

	properties, _ := m["properties"].(node)
	for name, property := range properties {
		s.schema(place+"."+name, property)
	}
	required, _ := m["required"].([]any)
	for _, name := range required {
		if properties[name.(string)] == nil {
			s.t.Errorf("%s requires %v, which it does not have", place, name)
		}
	}
	for _, inner := range []string{"items", "additionalProperties"} {
		if m[inner] != nil {
			s.schema(place+"."+inner, m[inner])
		}
	}
}
