package gozzard_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestExportedNames: every exported name is explained by its own comment, or by one over its group. Methods that
// implement an interface of the standard library explain themselves.
func TestExportedNames(t *testing.T) {
	for _, s := range parseAll(t) {
		if s.isTest() {
			continue
		}
		for _, d := range s.file.Decls {
			for _, name := range unexplained(d) {
				t.Errorf("%s: %s has no comment that explains it", s.path, name)
			}
		}
	}
}

// selfExplaining are methods whose meaning is known from the standard library.
var selfExplaining = map[string]bool{
	"Close": true, "Error": true, "Is": true, "Len": true, "Less": true, "MarshalJSON": true, "MarshalText": true,
	"Read": true, "ServeHTTP": true, "String": true, "Swap": true, "UnmarshalJSON": true, "UnmarshalText": true,
	"Unwrap": true, "Write": true, "Pop": true, "Push": true, "LogValue": true, "AppendJSON": true,
}

// unexplained lists the exported names of a declaration that no comment explains.
func unexplained(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && (selfExplaining[d.Name.Name] || !exportedReceiver(d.Recv)) {
			return nil
		}
		if d.Name.IsExported() && d.Doc == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Doc != nil && d.Lparen.IsValid() {
			return nil
		}
		for _, spec := range d.Specs {
			names = append(names, unexplainedSpec(d, spec)...)
		}
	}
	return names
}

func unexplainedSpec(d *ast.GenDecl, spec ast.Spec) (names []string) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
			names = append(names, spec.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

func exportedReceiver(recv *ast.FieldList) bool {
	t := recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
