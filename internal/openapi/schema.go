package openapi

import (
	"encoding"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Schemas makes schemas of Go types, as encoding/json encodes their values. Every struct type becomes one named schema
// that others refer to.
type Schemas struct {
	// Plain are the packages, by import path, whose types keep their names. The name of any other type begins with
	// the name of its package.
	Plain []string
	// Describe returns the description of a type, or of a field if field is not "". It may return "".
	Describe func(t reflect.Type, field string) string

	// Words returns the values that a type of texts may have, nil if it may have any. It may be nil.
	Words func(t reflect.Type) []string

	Named map[string]*Schema // by name; filled by Of
}

// Of is the schema of a type.
func (s *Schemas) Of(t reflect.Type) *Schema {
	if schema, ok := special(t); ok {
		return schema
	}

	switch t.Kind() {
	case reflect.Pointer:
		return s.Of(t.Elem())
	case reflect.Struct:
		return s.structRef(t)
	case reflect.Slice, reflect.Array:
		items := s.Of(t.Elem())
		if t.Elem().Kind() == reflect.Pointer {
			items = orNull(items)
		}
		return &Schema{Type: "array", Items: items}
	case reflect.Map:
		return &Schema{Type: "object", Additional: s.Of(t.Elem())}
	case reflect.String:
		schema := &Schema{Type: "string"}
		if s.Words != nil {
			schema.Enum = s.Words(t)
		}
		return schema
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return &Schema{Type: "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		zero := 0
		return &Schema{Type: "integer", Minimum: &zero}
	}

	panic("no schema for " + t.String())
}

// special is the schema of a type that encoding/json does not encode by its kind.
func special(t reflect.Type) (*Schema, bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return &Schema{Type: "string", Format: "date-time"}, true
	case isMoment(t):
		return &Schema{Type: "string", Format: "date-time", Pattern: momentPattern}, true
	case t == reflect.TypeFor[json.RawMessage]():
		return &Schema{}, true
	case t == reflect.TypeFor[[]byte]():
		return &Schema{Type: "string", ContentEncoding: "base64"}, true
	case t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &Schema{Type: "string"}, true
	}
	return nil, false
}

// momentPattern is the form of a time that isMoment.
const momentPattern = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`

// isMoment reports whether a type is a time of our own that is null when it is not known.
func isMoment(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous &&
		t.Field(0).Type == reflect.TypeFor[time.Time]()
}

// orNull is a schema that also accepts null.
func orNull(schema *Schema) *Schema {
	if schema.Ref != "" {
		return &Schema{AnyOf: []*Schema{schema, {Type: "null"}}}
	}
	schema.Type = schema.Type.OrNull()
	return schema
}

// structRef makes the named schema of a struct type, and returns a reference to it.
func (s *Schemas) structRef(t reflect.Type) *Schema {
	if t.NumField() == 0 {
		return &Schema{Type: "object"}
	}

	name := s.name(t)
	if s.Named == nil {
		s.Named = make(map[string]*Schema)
	}
	if s.Named[name] == nil {
		schema := &Schema{Type: "object", Properties: make(map[string]*Schema), Description: s.Describe(t, "")}
		s.Named[name] = schema // before its fields, which may refer to it
		s.addFields(schema, t)
	}

	return &Schema{Ref: "#/components/schemas/" + name}
}

// addFields adds the fields of a struct type to a schema. Fields of embedded structs are fields of the outer struct.
func (s *Schemas) addFields(schema *Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			s.addFields(schema, f.Type)
			continue
		}

		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}

		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		property := s.Of(f.Type)
		if !optional && (f.Type.Kind() == reflect.Pointer || isMoment(f.Type)) {
			property = orNull(property)
		}
		property.Description = s.Describe(t, f.Name)
		schema.Properties[name] = property
		if !optional {
			schema.Required = append(schema.Required, name)
		}
	}
}

// name is the name of a type's schema.
func (s *Schemas) name(t reflect.Type) string {
	for _, plain := range s.Plain {
		if t.PkgPath() == plain {
			return t.Name()
		}
	}
	prefix := []rune(path.Base(t.PkgPath()))
	prefix[0] = unicode.ToUpper(prefix[0])
	return string(prefix) + t.Name()
}
