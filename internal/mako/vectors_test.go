package mako_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/mako"
)

// vectors are what GSEKit answered, as testdata/vectors.json has it.
type vectors struct {
	Tree   string `json:"topology_xml_env_3"`
	Render []struct {
		Text    string
		Process int
		Output  string
		Code    string
		Message string
	}
	Sandbox []struct{ Text, Verdict, Message string }
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// readTree reads the XML of the tree.
func readTree(t testing.TB, text string) *mako.Element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	var top *mako.Element
	var open []*mako.Element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return top
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := &mako.Element{Tag: token.Name.Local}
			for _, a := range token.Attr {
				e.Attributes = append(e.Attributes, mako.Attribute{Name: a.Name.Local, Value: a.Value})
			}
			if n := len(open); n > 0 {
				open[n-1].Add(e)
			} else {
				top = e
			}
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
}

// processContext is the context of process 44 of the vectors: the first of module web.api, on the first host.
func processContext(t testing.TB, tree *mako.Element) *mako.Context {
	t.Helper()
	set := tree.Children[0]
	module := set.Children[1]
	host := module.Children[0]

	values := map[string]mako.Value{
		"FuncID": mako.String("web.api"), "ProcName": mako.String("web.api"), "bk_process_name": mako.String("web.api"),
		"FuncName": mako.String("accproc"), "InstID": mako.Int(1), "InstID0": mako.Int(0), "LocalInstID": mako.Int(1),
		"LocalInstID0": mako.Int(0), "bk_process_id": mako.Int(44), "WorkPath": mako.String("/data/app"),
		"PidFile": mako.String("/data/app/k44_${LocalInstID}.pid"), "bk_system": mako.None(),
	}
	for _, e := range []*mako.Element{set, module, host} {
		for _, a := range e.Attributes {
			values[a.Name] = mako.String(a.Value)
		}
	}

	c := &mako.Context{Values: values, Globals: slices.Sorted(maps.Keys(values)), Tree: tree,
		Now: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC), Random: rand.New(rand.NewPCG(1, 2))}
	c.This.Set, c.This.Module, c.This.Host = set, module, host
	return c
}

// preview renders a text as GSEKit's preview does: the check, and then the render. It gives the code and message of an error.
func preview(t testing.TB, text string, with *mako.Context) (out, code, message string) {
	t.Helper()
	compiled, err := mako.Load(text, func(name string) (string, error) { return "", &missingError{name} }, mako.DefaultLimits())
	if err == nil {
		out, err = compiled.Render(context.Background(), with, mako.DefaultLimits())
	}

	var check *mako.CheckError
	var fault *mako.RenderError
	var missing *missingError
	switch {
	case err == nil:
		return out, "", ""
	case errors.As(err, &check):
		return "", "4101007", check.Message
	case errors.As(err, &missing):
		return "", "4101001", missing.Error()
	case errors.As(err, &fault):
		return "", "4101004", fmt.Sprintf("模板渲染失败，[第%d行：%s，错误：%s]，请检查模板变量是否正确书写", fault.Line, fault.Source, fault.Message)
	}
	t.Fatalf("%q: error %T %v", text, err, err)
	return "", "", ""
}

// missingError is the error of the vectors for a template that is not there.
type missingError struct{ name string }

func (e *missingError) Error() string {
	return fmt.Sprintf("依赖模板[%s]不存在，请注意Ginclude的是模板名称，不是文件名称", e.name)
}

func render(text string, with *mako.Context) (string, error) {
	t, err := mako.Compile(text, mako.DefaultLimits())
	if err != nil {
		return "", err
	}
	return t.Render(context.Background(), with, mako.DefaultLimits())
}

// TestRenderVectors renders the templates that GSEKit rendered, with the same output or error, byte by byte. One of the 94 has
// a NUL: GSEKit rejects that request before anything is rendered, and Compile rejects the text.
func TestRenderVectors(t *testing.T) {
	v := readVectors(t)
	with := processContext(t, readTree(t, v.Tree))
	if len(v.Render) != 94 {
		t.Errorf("there are %d templates, want 94", len(v.Render))
	}

	for _, c := range v.Render {
		if c.Code == "4100001" {
			if _, err := render(c.Text, with); err == nil || !strings.Contains(err.Error(), "NUL") {
				t.Errorf("%q: %v", c.Text, err)
			}
			continue
		}
		out, code, message := preview(t, c.Text, with)
		if out != c.Output || code != c.Code || message != c.Message {
			t.Errorf("%q:\n got %q %s %s\nwant %q %s %s", c.Text, out, code, message, c.Output, c.Code, c.Message)
		}
	}
}

// TestCheckVectors has the verdicts of GSEKit's checker.
func TestCheckVectors(t *testing.T) {
	v := readVectors(t)
	if len(v.Sandbox) != 112 {
		t.Errorf("there are %d verdicts, want 112", len(v.Sandbox))
	}
	for _, c := range v.Sandbox {
		verdict, message := "allowed", ""
		if err := mako.Check(c.Text); err != nil {
			verdict, message = "refused", err.Error()
		}
		if verdict != c.Verdict || message != c.Message {
			t.Errorf("%q: %s %q, want %s %q", c.Text, verdict, message, c.Verdict, c.Message)
		}
	}
}
