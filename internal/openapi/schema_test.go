package openapi_test

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gozzard/gozzard/internal/openapi"
)

type inner struct {
	Text string `json:"text"`
}

type moment struct{ time.Time }

type outer struct {
	inner
	Number  int             `json:"number"`
	Count   uint64          `json:"count,omitempty"`
	Share   float32         `json:"share"`
	On      *bool           `json:"on,omitempty"`
	At      time.Time       `json:"at,omitzero"`
	Bytes   []byte          `json:"bytes"`
	Addr    netip.Addr      `json:"addr"`
	Any     json.RawMessage `json:"any"`
	Labels  map[string]bool `json:"labels"`
	Parts   []inner         `json:"parts"`
	Next    *outer          `json:"next,omitempty"`
	Nothing struct{}        `json:"nothing"`
	Hidden  string          `json:"-"`
	Moment  moment          `json:"moment"`
	Later   moment          `json:"later,omitzero"`
	Code    *int            `json:"code"`
	Child   *inner          `json:"child"`
}

// TestSchemas makes schemas of every kind of type.
func TestSchemas(t *testing.T) {
	s := openapi.Schemas{Plain: []string{reflect.TypeFor[inner]().PkgPath()},
		Describe: func(t reflect.Type, field string) string {
			if field == "" || field == "Share" {
				return t.Name() + " " + field
			}
			return ""
		}}

	if ref := s.Of(reflect.TypeFor[*outer]()); ref.Ref != "#/components/schemas/outer" {
		t.Errorf("the reference is %q", ref.Ref)
	}

	zero := 0
	form := `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`
	self := &openapi.Schema{Ref: "#/components/schemas/outer"}
	want := map[string]*openapi.Schema{
		"inner": {Type: "object", Description: "inner ", Required: []string{"text"},
			Properties: map[string]*openapi.Schema{"text": {Type: "string"}}},
		"outer": {Type: "object", Description: "outer ",
			Required: []string{"text", "number", "share", "bytes", "addr", "any", "labels", "parts", "nothing", "moment", "code",
				"child"},
			Properties: map[string]*openapi.Schema{
				"text": {Type: "string"}, "number": {Type: "integer"}, "count": {Type: "integer", Minimum: &zero},
				"share": {Type: "number", Description: "outer Share"}, "on": {Type: "boolean"},
				"at":    {Type: "string", Format: "date-time"},
				"bytes": {Type: "string", ContentEncoding: "base64"}, "addr": {Type: "string"}, "any": {},
				"labels": {Type: "object", Additional: &openapi.Schema{Type: "boolean"}},
				"parts":  {Type: "array", Items: &openapi.Schema{Ref: "#/components/schemas/inner"}},
				"next":   self, "nothing": {Type: "object"},
				"moment": {Type: "string|null", Format: "date-time", Pattern: form},
				"later":  {Type: "string", Format: "date-time", Pattern: form},
				"code":   {Type: "integer|null"},
				"child":  {AnyOf: []*openapi.Schema{{Ref: "#/components/schemas/inner"}, {Type: "null"}}},
			}},
	}
	if diff := cmp.Diff(want, s.Named); diff != "" {
		t.Errorf("schemas differ (-want +got):\n%s", diff)
	}
}

// TestTypes: several types are a list.
func TestTypes(t *testing.T) {
	for schema, want := range map[*openapi.Schema]string{
		{Type: "string"}: `{"type":"string"}`, {Type: openapi.Type("string").OrNull()}: `{"type":["string","null"]}`,
		{}: `{}`,
	} {
		if b, err := json.Marshal(schema); err != nil || string(b) != want {
			t.Errorf("%s, not %s: %v", b, want, err)
		}
	}
}

// TestSchemaNames: a type of another package has the name of its package too.
func TestSchemaNames(t *testing.T) {
	s := openapi.Schemas{Describe: func(reflect.Type, string) string { return "" }}
	if ref := s.Of(reflect.TypeFor[openapi.Info]()); ref.Ref != "#/components/schemas/OpenapiInfo" {
		t.Errorf("the reference is %q", ref.Ref)
	}
}
