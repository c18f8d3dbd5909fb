package mako_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/mako"
)

// small are limits that tests reach soon. The clock is not one of them: on a busy machine it would come first.
func small() mako.Limits {
	return mako.Limits{Text: 64 << 10, Output: 1 << 20, Memory: 16 << 20, Steps: 1_000_000, Time: time.Hour}
}

// TestTD30TemplateLimits has templates that want everything. Each fails with an error that names the limit, and none can catch it.
// What they do until then takes little of the processor, however long a busy machine needs for it.
func TestTD30TemplateLimits(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for name, c := range map[string]struct{ text, says string }{
		"loops for ever":       {"<%\nwhile True:\n    pass\n%>", "too many steps"},
		"catches and goes on":  {"<%\nwhile True:\n    try:\n        while True: pass\n    except: pass\n%>", "too many steps"},
		"catches in finally":   {"<%\ntry:\n    while True: pass\nfinally:\n    x = 1\n%>", "too many steps"},
		"repeats a text":       {"${'a' * 10 ** 9}", "memory"},
		"repeats a list":       {"${len([0] * 10 ** 9)}", "memory"},
		"doubles a text":       {"<%\ns = 'ab'\nwhile True:\n    s += s\n%>", "memory"},
		"doubles a list":       {"<%\ns = [1]\nwhile True:\n    s += s\n%>", "memory"},
		"large number":         {"${10 ** 10 ** 9}", "too large"},
		"shifted number":       {"${1 << 10 ** 9}", "too large"},
		"grows a number":       {"<%\nn = 3\nwhile True:\n    n = n * n\n%>", "too large"},
		"wide format":          {"${'%1000000000d' % 1}", "too large"},
		"wide format spec":     {"${'{:>1000000000}'.format(1)}", "too large"},
		"wide padding":         {"${'a'.ljust(10 ** 9)}", "memory"},
		"prints gigabytes":     {"% while True:\n" + strings.Repeat("x", 1000) + "\n% endwhile\n", "writes more than"},
		"list of a range":      {"${list(range(10 ** 9))}", "memory"},
		"large range":          {"${sum(range(10 ** 18))}", "too large"},
		"replaces":             {"${('a' * 10000).replace('a', 'b' * 10000)}", "memory"},
		"joins":                {"${('b' * 10000).join('a' * 10000)}", "memory"},
		"recursion":            {"<%\ndef f():\n    return f()\n%>${f()}", "recursion"},
		"mutual recursion":     {"<%\nf = lambda: g()\ng = lambda: f()\n%>${f()}", "recursion"},
		"recursive sort key":   {"<%\ndef f(x):\n    return sorted([1], key=f)\n%>${f(1)}", "recursion"},
		"path in a path":       {"${cc.xpath('//*[//*[//*[//*[//*[//*[//*[@x]]]]]]]')}", "memory"},
		"long template":        {strings.Repeat("a", 65<<10), "at most 65536"},
		"deep brackets":        {"${" + strings.Repeat("(", 5000) + strings.Repeat(")", 5000) + "}", "nested"},
		"deep not":             {"${" + strings.Repeat("not ", 5000) + "1}", "nested"},
		"deep minus":           {"${" + strings.Repeat("-", 5000) + "1}", "nested"},
		"long chain":           {"${" + strings.Repeat("1+", 5000) + "1}", "nested"},
		"deep blocks":          {strings.Repeat("% if True:\n", 2000) + strings.Repeat("% endif\n", 2000), "nested"},
		"large pattern":        {"<% import re %>${re.match('(a{1000}){1000}', 'a')}", "not supported"},
		"a list in itself":     {"<%\na = []\na.append(a)\nb = []\nb.append(b)\n%>${a == b}", "recursion"},
		"large key":            {"<%\nt = (1, 2)\nfor i in range(60):\n    t = (t, t)\n%>${{t: 1}}", "key"},
		"large key in a set":   {"<%\nt = (1, 2)\nfor i in range(60):\n    t = (t, t)\n%>${t in {1}}", "key"},
		"many equal lists":     {"<%\na = [1]\nb = [1]\nfor i in range(60):\n    a = [a, a]\n    b = [b, b]\n%>${a == b}", "memory"},
		"many equal dicts":     {"<%\na = {}\nb = {}\nfor i in range(60):\n    a = {1: a, 2: a}\n    b = {1: b, 2: b}\n%>${a == b}", "memory"},
		"a long text of lists": {"<%\na = [1]\nfor i in range(40):\n    a = [a, a]\n%>${a}", "memory"},
		"a long text of JSON":  {"<%\nimport json\na = [1]\nfor i in range(60):\n    a = [a, a]\n%>${json.dumps(a)}", "memory"},
		"wide JSON":            {"<% import json %>${len(json.dumps([1] * 10000, indent='x' * 10000))}", "memory"},
		"long keys in JSON":    {"<% import json %>${len(json.dumps([{'k' * 10000: 1}] * 10000))}", "memory"},
		"separators of JSON":   {"<% import json %>${len(json.dumps([1] * 10000, separators=(',' * 10000, ':')))}", "memory"},
		"many wide formats":    {"${len([format(1, '1000000d') for i in range(1000)])}", "memory"},
		"many wide f-strings":  {"${len([f'{i:1000000d}' for i in range(1000)])}", "memory"},
		"wide tabs":            {"${len('\t'.expandtabs(10 ** 9))}", "memory"},
		"slow pattern":         {"<% import re %>${re.search('x{1000}y{1000}x{1000}y{1000}z', 'x' * 1000000)}", "too long for a pattern"},
		"large program":        {"<% import re %>${re.search('x{1000}' * 20, 'x')}", "too large"},
		"groups in groups":     {"<% import re %>${len(re.sub('(a+)', r'\\1' * 10000, 'a' * 10000))}", "memory"},
		"limit in a pair":      {"<%\ntry:\n    dict([('a' * 1000, 'b'), range(2000000000)])\nexcept: pass\n%>", "memory"},
		"replace in a path":    {"${cc.xpath('string(replace(\"a\", \"a\", \"aaaaaaaaaa\"))')}", "Unregistered function"},
		"pattern in a path":    {"${cc.xpath('//Host[matches(@InnerIP, \"(a*)*\")]')}", "Unregistered function"},
		"long path":            {"${cc.xpath('//a' * 2000)}", "at most 4096"},
		"deep path":            {"${cc.xpath('(' * 2000 + '1' + ')' * 2000)}", "Invalid expression"},
		"deep operators": {"${" + strings.Repeat("(", 90) + "1" +
			strings.Repeat(strings.Repeat("+1", 300)+")", 90) + "}", "nested"},
		"long comparison": {"${1" + strings.Repeat("<1", 5000) + "}", "nested"},
		"many elif":       {"% if 0:\n" + strings.Repeat("% elif 1:\n", 600) + "% endif\n", "nested"},
		"invalid UTF-8":   {"a\xffb", "not valid UTF-8"},
		"NUL":             {"a\x00b", "NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			begin := processorTime(t)
			compiled, err := mako.Compile(c.text, small())
			if err == nil {
				_, err = compiled.Render(context.Background(), with, small())
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if spent := processorTime(t) - begin; spent > 30*time.Second {
				t.Errorf("took %v of the processor", spent)
			}
		})
	}
}

// TestTD30CompileTime has large texts that are made to be slow to read. Each takes a part of a second; those that once took
// quadratic time took minutes.
func TestTD30CompileTime(t *testing.T) {
	limits := mako.DefaultLimits()
	limits.Text = 256 << 10
	repeat := func(text string) string { return strings.Repeat(text, (limits.Text-100)/len(text)) }
	for name, text := range map[string]string{
		"ends of tags":            repeat("</%"),
		"ends of tags and blanks": repeat("</% "),
		"ends before one end":     repeat("</%") + " x>",
		"begins of tags":          repeat("<%"),
		"tags":                    repeat("<%a "),
		"quotes in tags":          repeat("<%a='%>'"),
		"comments":                repeat("<%doc>"),
		"texts":                   repeat("<%text></%text>"),
		"module blocks":           repeat("<%!x=1%>"),
		"blocks":                  repeat("<%x=1%>"),
		"expressions":             repeat("${1}"),
		"open expressions":        repeat("${"),
		"quotes":                  "${" + repeat("'\n"),
		"triple quotes":           "${" + repeat("'''\""),
		"brackets":                "${" + repeat("("),
		"lines":                   repeat("% \n"),
		"carriage returns":        repeat("% x\r"),
		"joined lines":            repeat("\\\n"),
		"blanks":                  repeat("\n "),
		"elif":                    "% if 0:\n" + repeat("% elif 1:\n") + "% endif\n",
		"elif in code":            "<%\nif 0: pass\n" + repeat("elif 1: pass\n") + "%>",
		"comparisons":             "${1" + repeat("<1") + "}",
		"sums":                    "${1" + repeat("+1") + "}",
		"and":                     "${1" + repeat(" and 1") + "}",
		"attributes":              "${a" + repeat(".a") + "}",
		"dotted import":           "<% import a" + repeat(".a") + " %>",
		"strings":                 "${" + repeat("'a' ") + "}",
		"list":                    "${[" + repeat("1,") + "]}",
		"nonlocal":                "<%\ndef f(a):\n    def g():\n        nonlocal a" + repeat(",a") + "\n    g()\n%>",
		"f-strings":               "${f'" + repeat("{1}") + "'}",
		"f-string specs":          "${f'" + repeat("{1:") + "'}",
		"statements":              "<% " + repeat("x=1;") + "%>",
		"functions":               "<%\n" + repeat("def f(): pass\n") + "%>",
		"comment lines":           repeat("##\n"),
		"filters":                 "${1|" + repeat("n,") + "n}",
		"lambdas":                 "${" + repeat("lambda:") + "1}",
		"Ginclude":                repeat("# Ginclude ''\n"),
	} {
		t.Run(name, func(t *testing.T) {
			begin := processorTime(t)
			_ = mako.Check(text)
			_, _ = mako.Compile(text, limits)
			_, _ = mako.Include(text, func(string) (string, error) { return "", nil }, limits)
			spent := processorTime(t) - begin
			t.Log(spent.Round(time.Millisecond))
			if spent > 30*time.Second {
				t.Errorf("took %v of the processor", spent)
			}
		})
	}
}

// TestTD30Classes: a class that is derived from another one in very many ways is looked at once.
func TestTD30Classes(t *testing.T) {
	text := "<%\nclass A0: pass\n"
	for i := range 60 {
		text += fmt.Sprintf("class B%[2]d(A%[1]d): pass\nclass C%[2]d(A%[1]d): pass\nclass A%[2]d(B%[2]d, C%[2]d): pass\n", i, i+1)
	}
	text += "x = isinstance(A60(), int)\nA60().nothing\n%>"
	if out, err := render(text, &mako.Context{}); err == nil || !strings.Contains(err.Error(), "has no attribute 'nothing'") {
		t.Errorf("got %q %v", out, err)
	}
}

// TestDeadline ends a render whose time is over, whatever it does.
func TestDeadline(t *testing.T) {
	limits := small()
	limits.Steps, limits.Time = 1<<60, 50*time.Millisecond
	compiled, err := mako.Compile("<%\nwhile True:\n    pass\n%>", limits)
	if err != nil {
		t.Fatal(err)
	}
	_, err = compiled.Render(context.Background(), &mako.Context{}, limits)
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
}

// TestTE30NothingOutside: no name in a template leads outside.
func TestTE30NothingOutside(t *testing.T) {
	with := processContext(t, readTree(t, readVectors(t).Tree))
	for _, text := range []string{
		"${open('/etc/passwd')}", "${__import__('os')}", "<% import os %>", "<% from os import path %>", "<% import sys %>",
		"${eval('1')}", "${exec('1')}", "${globals()}", "${().__class__.__bases__}", "${''.__class__}", "${len.__self__}",
		"<% import json %>${json.codecs}", "<% import random %>${random._os}", "<% import datetime %>${datetime.sys}",
		"<% import re %>${re.sre_parse}", "<% import math %>${math.__loader__}", "${this.__dict__}", "${cc.__class__}",
		"${'{0.__class__}'.format(1)}", "${getattr(1, '__class__')}", "${(lambda: 0).__code__}", "${print(1)}", "${load('x')}",
		"${k_ctx('x')}", "${v_x}", "${context}", "${self.module}", "${caller}", "<%include file='/etc/passwd'/>",
		"<%namespace name='x' file='y'/>", "<%inherit file='x'/>", "<% import time %>${time.sleep(1)}",
	} {
		if out, err := render(text, with); err == nil {
			t.Errorf("%q gives %q", text, out)
		}
	}
}
