//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/topology"
)

// original is a Python program: the first line has the tree and the variables of all instances, each further line a template,
// which it renders for all of them.
const original = `
import hashlib, json, sys, time, types
import xml.etree.ElementTree as tree
import mako
from mako.template import Template
print(json.dumps({"version": mako.__version__}), flush=True)
given = json.loads(sys.stdin.readline())
cc = tree.fromstring(given["tree"])
sets = {e.attrib["bk_set_id"]: e for e in cc}
modules = {e.attrib["bk_module_id"]: e for e in cc.findall("./Set/Module")}
contexts = []
for c in given["contexts"]:
    this = types.SimpleNamespace(cc_set=sets[c["set"]], cc_module=modules[c["module"]])
    contexts.append(dict(c["values"], cc=cc, this=this))
for line in sys.stdin:
    text = json.loads(line)
    sum = hashlib.sha256()
    begin = time.monotonic()
    template = Template(text)
    for c in contexts:
        sum.update(template.render(**c).encode())
    print(json.dumps({"took": time.monotonic() - begin, "sum": sum.hexdigest()}), flush=True)
`

// other is Mako.
type other struct {
	version string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// answer is a line of the Python program.
type answer struct {
	Version, Sum string
	Took         float64
}

// startMako starts Mako with a tree and the variables of all instances.
func startMako(ctx context.Context, root *mako.Element, all []topology.Spot, contexts []*mako.Context) (*other, error) {
	o := &other{cmd: exec.CommandContext(ctx, "/usr/bin/python3", "-c", original)} // #nosec G204 -- a constant
	o.cmd.Stderr = os.Stderr
	var err error
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	o.out = bufio.NewReader(out)
	if err := o.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start Python, which the benchmark compares with: %w", err)
	}

	var tree strings.Builder
	xmlOf(&tree, root)
	type context struct {
		Set    string         `json:"set"`
		Module string         `json:"module"`
		Values map[string]any `json:"values"`
	}
	given := struct {
		Tree     string    `json:"tree"`
		Contexts []context `json:"contexts"`
	}{Tree: tree.String()}
	for i, c := range contexts {
		given.Contexts = append(given.Contexts, context{fmt.Sprint(all[i].Set.ID), fmt.Sprint(all[i].Module.ID), plain(c.Values)})
	}
	hello, err := o.read()
	if err != nil {
		return nil, errors.Join(errors.New("this benchmark needs Mako of Debian: install python3-mako"), err)
	}
	o.version = hello.Version
	return o, o.write(given)
}

// plain gives values as JSON has them.
func plain(values map[string]mako.Value) map[string]any {
	out := map[string]any{}
	for name, v := range values {
		switch v := v.(type) {
		case starlark.NoneType:
			out[name] = nil
		case starlark.Int:
			out[name], _ = v.Int64()
		default:
			out[name] = mako.Text(v)
		}
	}
	return out
}

func (o *other) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = o.in.Write(append(line, '\n'))
	return err
}

func (o *other) read() (a answer, err error) {
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("the Python program ended: %w", err)
	}
	return a, json.Unmarshal(line, &a)
}

// render renders a template for all instances.
func (o *other) render(text string) (time.Duration, string, error) {
	if err := o.write(text); err != nil {
		return 0, "", err
	}
	a, err := o.read()
	return time.Duration(a.Took * float64(time.Second)), a.Sum, err
}

func (o *other) stop() {
	_ = o.in.Close()
	_ = o.cmd.Wait()
}
