// Command readability prints two figures about the Go files of the working folder: how many functions of 20 lines
// or more have no blank line, and how many lines are longer than 120 columns. It is a measure, not a gate.
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	longFunction = 20  // lines
	longLine     = 120 // columns; a tab counts as one
)

// figures are the counts over all files.
type figures struct {
	functions, dense int // functions of longFunction lines or more; those without a blank line
	lines, long      int
}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "readability:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	var product, tests figures
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			return tests.add(path, text)
		}
		return product.add(path, text)
	})
	if err != nil {
		return err
	}

	product.print("product")
	tests.print("tests")
	return nil
}

// add counts one file.
func (f *figures) add(path string, text []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("cannot parse %s: %w", path, err)
	}

	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	for _, line := range lines {
		f.lines++
		if utf8.RuneCount(line) > longLine {
			f.long++
		}
	}

	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		from, to := fset.Position(fn.Pos()).Line, fset.Position(fn.End()).Line
		if to-from+1 < longFunction {
			continue
		}
		f.functions++
		if !hasBlank(lines[from-1 : to]) {
			f.dense++
		}
	}
	return nil
}

func hasBlank(lines [][]byte) bool {
	for _, line := range lines {
		if len(bytes.TrimSpace(line)) == 0 {
			return true
		}
	}
	return false
}

func (f *figures) print(what string) {
	fmt.Printf("%-8s %5d of %5d functions of %d lines or more have no blank line: %.1f %%\n",
		what, f.dense, f.functions, longFunction, percent(f.dense, f.functions))
	fmt.Printf("%-8s %5d of %5d lines are longer than %d columns: %.2f %%\n",
		what, f.long, f.lines, longLine, percent(f.long, f.lines))
}

func percent(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(n) / float64(of)
}
