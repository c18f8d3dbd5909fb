package api_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/api"
)

// TestDescriptions compares descriptions.json with the doc comments of the types in the OpenAPI document. After a
// change run it twice with -update: the file is part of the program, so docs/openapi.json follows with the second run.
func TestDescriptions(t *testing.T) {
	// Read the comments of the packages that have such types.
	comments := make(map[string]string)
	for name, dir := range map[string]string{"client": "../../client", "gozzard": "../..", "enrol": "../enrol"} {
		readComments(t, name, dir, comments)
	}

	// Keep those of the types in the document. Every type has one; a field may go without.
	used := make(map[string]string)
	for typ := range documented() {
		key := path.Base(typ.PkgPath()) + "." + typ.Name()
		if used[key] = comments[key]; used[key] == "" {
			t.Errorf("type %s has no doc comment", key)
		}
		for i := range typ.NumField() {
			field := key + "." + typ.Field(i).Name
			if comments[field] != "" {
				used[field] = comments[field]
			}
		}
	}

	got, err := json.MarshalIndent(used, "", "  ")
	check(t, err)
	compareFile(t, "descriptions.json", string(got)+"\n")
}

// documented finds the named struct types of every request and answer in the route table.
func documented() map[reflect.Type]bool {
	found := make(map[reflect.Type]bool)
	add := func(v any) {
		if v != nil {
			addTypes(found, reflect.TypeOf(v))
		}
	}

	add(client.ErrorAnswer{})
	add(client.Event{})
	for _, rt := range api.Routes() {
		add(rt.Body.Value)
		for _, a := range rt.Answers {
			add(a.Value)
		}
	}

	return found
}

func addTypes(found map[reflect.Type]bool, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		addTypes(found, t.Elem())
	case reflect.Struct:
		if found[t] || !strings.HasPrefix(t.PkgPath(), "github.com/gozzard/") {
			return
		}
		found[t] = true
		for i := range t.NumField() {
			addTypes(found, t.Field(i).Type)
		}
	}
}

// readComments reads the doc comments of the struct types in a folder, and those of their fields.
func readComments(t *testing.T, name, dir string, into map[string]string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	check(t, err)

	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		check(t, err)
		if file.Name.Name != name { // a test of the package
			continue
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				typ := spec.(*ast.TypeSpec)
				key := name + "." + typ.Name.Name
				into[key] = sentences(group.Doc)
				if fields, ok := typ.Type.(*ast.StructType); ok {
					readFieldComments(key, fields, into)
				}
			}
		}
	}
}

func readFieldComments(key string, fields *ast.StructType, into map[string]string) {
	for _, field := range fields.Fields.List {
		text := sentences(field.Doc)
		if text == "" {
			text = sentences(field.Comment)
		}
		for _, name := range field.Names {
			into[key+"."+name.Name] = text
		}
	}
}

// sentences is a comment on one line.
func sentences(c *ast.CommentGroup) string {
	return strings.Join(strings.Fields(c.Text()), " ")
}
