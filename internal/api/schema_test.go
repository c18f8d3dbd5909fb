package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/blueking"
)

// node is an object of a JSON document.
type node = map[string]any

// parseOpenAPI parses the OpenAPI document of the API.
func parseOpenAPI(t *testing.T) node {
	t.Helper()
	var doc node
	check(t, json.Unmarshal(api.OpenAPI(blueking.AuthorizationHeader), &doc))
	return doc
}

// follow finds a place in a document by its keys, nil if there is none.
func follow(n any, keys ...string) any {
	for _, key := range keys {
		m, ok := n.(node)
		if !ok {
			return nil
		}
		n = m[key]
	}
	return n
}

// resolve finds the target of a reference within a document, nil if there is none.
func resolve(doc node, ref string) any {
	path, local := strings.CutPrefix(ref, "#/")
	if !local {
		return nil
	}
	return follow(doc, strings.Split(path, "/")...)
}

// checkAnswer returns what is wrong with an answer by the OpenAPI document, "" if nothing is.
func checkAnswer(doc node, e exchange) string {
	response, ok := follow(doc, "paths", e.route, strings.ToLower(e.method), "responses", fmt.Sprint(e.status)).(node)
	if !ok {
		return fmt.Sprintf("the document has no answer %d", e.status)
	}
	if ref, ok := response["$ref"].(string); ok {
		response = resolve(doc, ref).(node)
	}

	kind, _, _ := strings.Cut(e.kind, ";")
	media, ok := follow(response, "content", kind).(node)
	switch {
	case !ok && (kind != "" || e.body != ""):
		return fmt.Sprintf("the document has no body of type %q for answer %d", kind, e.status)
	case !ok || media["schema"] == nil:
		return ""
	case kind != "application/json":
		return "" // YAML, which has the schema of the same document in JSON
	}

	var body any
	if err := json.Unmarshal([]byte(e.body), &body); err != nil {
		return err.Error()
	}
	return checkValue(doc, media["schema"].(node), body, "answer")
}

// checkRequest returns what is wrong with the body of a request that succeeded, "" if nothing is.
func checkRequest(doc node, e exchange) string {
	body := follow(doc, "paths", e.route, strings.ToLower(e.method), "requestBody")
	switch {
	case e.status >= 400:
		return ""
	case body == nil && e.sent != "":
		return "the document has no body of the request"
	case body == nil:
		return ""
	}

	schema, ok := follow(body, "content", "application/json", "schema").(node)
	if !ok || schema["$ref"] == nil {
		return "" // bytes, or a document of any form
	}
	var value any
	if err := json.Unmarshal([]byte(e.sent), &value); err != nil {
		return err.Error()
	}
	return checkValue(doc, schema, value, "request")
}

// checkValue returns how a value differs from a schema, "" if it does not. It is stricter than JSON Schema: a property
// that the schema does not have is a difference, so the schema cannot forget one.
func checkValue(doc, schema node, v any, place string) string {
	if ref, ok := schema["$ref"].(string); ok {
		return checkValue(doc, resolve(doc, ref).(node), v, place)
	}

	if list, ok := schema["anyOf"].([]any); ok {
		texts := make([]string, len(list))
		for i, one := range list {
			if texts[i] = checkValue(doc, one.(node), v, place); texts[i] == "" {
				return ""
			}
		}
		return strings.Join(texts, "; ")
	}

	kind := schema["type"]
	if list, ok := kind.([]any); ok && len(list) == 2 && list[1] == "null" {
		if v == nil {
			return ""
		}
		kind = list[0]
	}

	switch kind {
	case nil: // accepts everything
		return ""
	case "null":
		if v != nil {
			return fmt.Sprintf("%s is %v, not null", place, v)
		}
		return ""
	case "object":
		return checkObject(doc, schema, v, place)
	case "array":
		list, ok := v.([]any)
		if !ok {
			return fmt.Sprintf("%s is %v, not a list", place, v)
		}
		for i, e := range list {
			if text := checkValue(doc, schema["items"].(node), e, fmt.Sprintf("%s[%d]", place, i)); text != "" {
				return text
			}
		}
		return ""
	}

	if !isScalar(schema, kind, v) {
		return fmt.Sprintf("%s is %v, not of type %v", place, v, schema["type"])
	}
	return ""
}

func isScalar(schema node, kind, v any) bool {
	switch kind {
	case "string":
		s, ok := v.(string)
		form, limited := schema["pattern"].(string)
		words, chosen := schema["enum"].([]any)
		return ok && (!limited || regexp.MustCompile(form).MatchString(s)) && (!chosen || slices.Contains(words, v))
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "number":
		_, ok := v.(float64)
		return ok
	case "integer":
		n, ok := v.(float64)
		low, limited := schema["minimum"].(float64)
		return ok && n == float64(int64(n)) && (!limited || n >= low)
	}
	return false
}

func checkObject(doc, schema node, v any, place string) string {
	object, ok := v.(node)
	if !ok {
		return fmt.Sprintf("%s is %v, not an object", place, v)
	}

	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := object[name.(string)]; !ok {
			return fmt.Sprintf("%s has no %s", place, name)
		}
	}

	for name, value := range object {
		property, ok := follow(schema, "properties", name).(node)
		if !ok {
			property, ok = schema["additionalProperties"].(node)
		}
		if !ok {
			return fmt.Sprintf("the schema of %s has no %s", place, name)
		}
		if text := checkValue(doc, property, value, place+"."+name); text != "" {
			return text
		}
	}

	return ""
}

// TestCheckValue: the checks of this file find what they are for.
func TestCheckValue(t *testing.T) {
	doc := node{"s": node{"type": "object", "required": []any{"a"}, "properties": node{
		"a": node{"type": "integer", "minimum": 0.0}, "b": node{"type": "array", "items": node{"type": "string"}},
		"c": node{"type": "object", "additionalProperties": node{"type": "boolean"}}, "d": node{},
		"at": node{"type": []any{"string", "null"}, "pattern": "^x+$"}, "word": node{"type": "string", "enum": []any{"on"}},
		"child": node{"anyOf": []any{node{"$ref": "#/s"}, node{"type": "null"}}}}}}
	schema := node{"$ref": "#/s"}
	for _, good := range []string{`{"a":1}`, `{"a":0,"b":[],"c":{"x":true},"d":[1]}`,
		`{"a":0,"at":null,"word":"on","child":null}`, `{"a":0,"at":"xx","child":{"a":1}}`} {
		var v any
		check(t, json.Unmarshal([]byte(good), &v))
		if text := checkValue(doc, schema, v, "it"); text != "" {
			t.Errorf("%s: %s", good, text)
		}
	}

	var faults []string
	for _, bad := range []string{`{}`, `[]`, `{"a":1.5}`, `{"a":-1}`, `{"a":"1"}`, `{"a":1,"b":null}`,
		`{"a":1,"b":[2]}`, `{"a":1,"c":{"x":1}}`, `{"a":1,"e":2}`, `{"a":1,"at":"xy"}`,
		`{"a":1,"at":3}`, `{"a":1,"word":"off"}`, `{"a":1,"word":null}`, `{"a":1,"child":{}}`, `{"a":1,"child":7}`} {
		var v any
		check(t, json.Unmarshal([]byte(bad), &v))
		text := checkValue(doc, schema, v, "it")
		if text == "" || slices.Contains(faults, text) {
			t.Errorf("%s: %q", bad, text)
		}
		faults = append(faults, text)
	}
}
