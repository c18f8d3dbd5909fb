package topology_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/topology"
)

// vectorBusiness is the business of GSEKit's vectors, and the tree that GSEKit made of it, as XML.
func vectorBusiness(t *testing.T) (b *topology.Business, xml string) {
	t.Helper()
	doc, err := os.ReadFile("../mako/testdata/topology.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if b, err = topology.Parse(doc); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../mako/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Tree string `json:"topology_xml_env_3"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return b, v.Tree
}

// TestTree makes the tree that GSEKit made of the same business, byte by byte.
func TestTree(t *testing.T) {
	b, want := vectorBusiness(t)
	spot, found := b.Find(44)
	if !found {
		t.Fatal("process 44 is not there")
	}
	with := b.Tree(topology.EnvFormal).Context(spot, 1, 1, time.Now())
	if got := `<?xml version="1.0" encoding="utf-8"?>` + xmlOf(with.Tree); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func xmlOf(e *mako.Element) string {
	var b strings.Builder
	b.WriteString("<" + e.Tag)
	for _, a := range e.Attributes {
		b.WriteString(" " + a.Name + `="` + a.Value + `"`)
	}
	if len(e.Children) == 0 {
		return b.String() + "/>"
	}
	b.WriteString(">")
	for _, child := range e.Children {
		b.WriteString(xmlOf(child))
	}
	return b.String() + "</" + e.Tag + ">"
}

// TestContext has the values that GSEKit's help lists for process 44.
func TestContext(t *testing.T) {
	b, _ := vectorBusiness(t)
	spot, _ := b.Find(44)
	with := b.Tree(topology.EnvFormal).Context(spot, 2, 5, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for name, want := range map[string]string{
		"Scope": "管控平台.web.api.127.0.0.1_web.api.web.api.44", "FuncID": "web.api", "InstID": "5", "InstID0": "4",
		"LocalInstID": "2", "LocalInstID0": "1", "bk_set_name": "管控平台", "bk_module_name": "web.api",
		"bk_host_innerip": "127.0.0.1", "bk_cloud_id": "0", "bk_process_id + 1": "45", "bk_process_name": "web.api",
		"FuncName": "accproc", "ProcName": "web.api", "WorkPath": "/data/app", "PidFile": "/data/app/k44_${LocalInstID}.pid",
		"bk_category": "None", "bk_category is None": "True", "SetCategory": "", "bk_chn_name": "", "SetChnName": "", "bk_platform": "pc",
		"Platform": "pc", "bk_service_status": "1", "SetServiceState": "1", "bk_set_env": "3", "SetEnviType": "3", "SetName": "管控平台",
		"bk_system": "None", "System": "", "bk_world_id": "None", "bk_world_id is None": "False", "SetWorldID": "None", "zone": "z0",
		"InnerIP": "127.0.0.1", "bk_host_name": "host1", "HostName": "host1", "operator": "admin", "rack": "r1", "ModuleName": "web.api",
		"bk_module_type": "1", "tier": "t1", "this.cc_host.attrib['bk_host_id']": "1", "global_variables['InstID']": "5",
		"len(global_variables)": "43", "sorted(global_variables)[-1]": "zone", "list(global_variables)[15:20]": "['PidFile', 'this', 'cc', 'bk_category', 'SetCategory']",
		"list(global_variables)[-4:]": "['ModuleName', 'bk_module_type', 'tier', 'global_variables']", "global_variables['cc'].tag": "Application",
		"global_variables['global_variables']['InstID0']": "4", "bk_cloud_id + '1'": "01",
	} {
		template, err := mako.Compile("${"+name+"}", mako.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := template.Render(t.Context(), with, mako.DefaultLimits()); err != nil || got != want {
			t.Errorf("%s is %q %v, want %q", name, got, err, want)
		}
	}

	for _, name := range []string{"bk_set_id", "SetID", "ModuleID", "bk_host_id", "HELP", "nope"} {
		template, _ := mako.Compile("${"+name+"}", mako.DefaultLimits())
		if got, err := template.Render(t.Context(), with, mako.DefaultLimits()); err == nil {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestVectors renders the templates that GSEKit rendered, with what the topology gives: the outputs are the same, byte by
// byte. Those that are errors are in the tests of package mako.
func TestVectors(t *testing.T) {
	b, _ := vectorBusiness(t)
	text, err := os.ReadFile("../mako/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Render []struct {
			Text, Output, Code string
			Process            int
		}
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}

	rendered := 0
	for _, c := range v.Render {
		if c.Code != "" {
			continue
		}
		spot, _ := b.Find(c.Process)
		template, err := mako.Load(c.Text, func(name string) (string, error) { return "", fmt.Errorf("no %s", name) }, mako.DefaultLimits())
		if err != nil {
			t.Errorf("%q: %v", c.Text, err)
			continue
		}
		with := b.Tree(spot.Set.Env).Context(spot, 1, 1, time.Now())
		if got, err := template.Render(t.Context(), with, mako.DefaultLimits()); err != nil || got != c.Output {
			t.Errorf("%q of %d: %q %v, want %q", c.Text, c.Process, got, err, c.Output)
		}
		rendered++
	}
	if rendered < 70 {
		t.Errorf("only %d templates were rendered", rendered)
	}
}

// TestTE30OneBusinessAndOneEnvironment: a template finds nothing of other environments, and what one render does to its
// variables, the next does not see.
func TestTE30OneBusinessAndOneEnvironment(t *testing.T) {
	b, _ := vectorBusiness(t)
	spot, _ := b.Find(44)
	with := b.Tree(topology.EnvFormal).Context(spot, 1, 1, time.Now())
	template, err := mako.Compile("${len(cc)} ${cc.xpath('count(//Set[@SetEnviType!=\"3\"])')} ${global_variables.get('x')}"+
		"<% global_variables['x'] = 1 %> ${global_variables['x']} ${cc.xpath('count(/..)')} ${this.cc_host.xpath('count(ancestor::*)')}",
		mako.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := template.Render(t.Context(), with, mako.DefaultLimits()); err != nil || got != "2 0.0 None 1 0.0 3.0" {
			t.Errorf("got %q %v", got, err)
		}
	}
}

// TestHelp has every variable with its value, and is a variable of previews only.
func TestHelp(t *testing.T) {
	b, _ := vectorBusiness(t)
	spot, _ := b.Find(44)
	with := b.Tree(topology.EnvFormal).Context(spot, 1, 1, time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))
	topology.AddHelp(with)
	template, err := mako.Compile("${HELP}${'HELP' in global_variables}", mako.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	out, err := template.Render(t.Context(), with, mako.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}

	for _, line := range []string{"* NOW: 2026-01-02 03:04:05.000006 *", "${ Scope } = 管控平台.web.api.127.0.0.1_web.api.web.api.44",
		"${ bk_category } = None", "${ SetCategory } = ", "${ InstID0 } = 0", "${ rack } = r1", "    127.0.0.3", "True",
		`${ this.cc_set.attrib["SetID"] } = 5`, `${ this.cc_module.attrib["tier"] } = t1`, `${ this.cc_host.attrib["bk_host_id"] } = 1`} {
		if !strings.Contains("\n"+out+"\n", "\n"+line+"\n") {
			t.Errorf("no line %q in %s", line, out)
		}
	}
	if n := strings.Count(out, "} = "); n != 40+17+6+8 {
		t.Errorf("%d lines with values", n)
	}
}

// TestExtraFaults rejects attributes that templates could not use, or that hide something else.
func TestExtraFaults(t *testing.T) {
	many := map[string]string{}
	for i := range 101 {
		many[fmt.Sprint("a", i)] = ""
	}
	for _, c := range []struct {
		texts map[string]string
		says  string
	}{
		{map[string]string{"bk_set_name": "x"}, "sets[0].attributes.bk_set_name: a set has this attribute by itself"},
		{map[string]string{"cc": "x"}, "sets[0].attributes.cc: templates use this name"},
		{map[string]string{"1a": "x"}, "does not begin with a digit"},
		{map[string]string{"": "x"}, "the name is empty"},
		{map[string]string{"a;b": "x"}, "letters, digits and _"},
		{map[string]string{strings.Repeat("a", 65): "x"}, "has 65 bytes"},
		{map[string]string{"a": "x\ny"}, "control or direction characters"},
		{map[string]string{"a": strings.Repeat("x", 5000)}, "has 5000 bytes"},
		{many, "has 101 attributes"},
	} {
		b, _ := vectorBusiness(t)
		b.Sets[0].Attributes = topology.NewExtra(c.texts)
		faults := b.Check()
		if len(faults) != 1 || !strings.Contains(faults[0].Path+": "+faults[0].Text, c.says) {
			t.Errorf("%.80v: %v, want %s", c.texts, faults, c.says)
		}
	}

	b, _ := vectorBusiness(t)
	b.Sets[0].Modules[0].Attributes, b.Sets[0].Modules[0].Instances[0].HostAttributes = `{"a":1}`, `{"InnerIP":"x"}`
	if faults := b.Check(); len(faults) != 2 {
		t.Errorf("got %v", faults)
	}
}
