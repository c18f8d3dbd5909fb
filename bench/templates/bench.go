//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/sheet"
	"github.com/gozzard/gozzard/internal/mako"
	"github.com/gozzard/gozzard/internal/topology"
)

// results is the result of the run.
type results struct {
	sheet.Sheet
	size size
	mako string // its version
}

// Text is the page with the results.
func (r *results) Text() string {
	command := "go run ./bench/templates"
	if r.size.name != "full" {
		command += " -" + r.size.name
	}
	return r.Markdown(sheet.Head{
		Title: "Templates beside Mako", Command: command,
		Versions: sheet.Versions("Mako "+r.mako+" of Debian on CPython, with xml.etree for the tree", "go.starlark.net"),
		Read:     "Read the ratios: both sides rendered the same texts for the same instances in the same run, one after the other on one CPU.",
	})
}

// run measures both sides.
func run(ctx context.Context, s size) (*results, error) {
	res := &results{size: s, Sheet: sheet.Sheet{At: time.Now()}}
	b := business(s)
	if faults := b.Check(); len(faults) > 0 {
		return nil, fmt.Errorf("the business of the benchmark is wrong: %v", faults[0])
	}

	begin := time.Now()
	tree := b.Tree(topology.EnvFormal)
	built := time.Since(begin)
	all := spots(b)
	other, err := startMako(ctx, tree.Context(all[0], 1, 1, res.At).Tree, all, contexts(tree, all, res.At))
	if err != nil {
		return nil, err
	}
	defer other.stop()
	res.mako = other.version

	table := res.Table(fmt.Sprintf("%d instances in a topology of %d hosts", len(all), len(all)), "Gozzard", "Mako")
	table.Add("make the tree", span(built), "", "", "")
	for _, t := range templates(s) {
		ours, sum, bytes, err := render(ctx, tree, all, t.text, res.At)
		if err != nil {
			return res, err
		}
		theirs, sumOther, err := other.render(t.text)
		if err != nil {
			return res, err
		}
		if sum != sumOther {
			return res, fmt.Errorf("%s: the texts of both sides are different", t.what)
		}
		table.Add(fmt.Sprintf("%s: %d KB of template, %d KB of text", t.what, len(t.text)/1000, bytes/len(all)/1000),
			span(ours)+" / "+span(ours/time.Duration(len(all)))+" each", span(theirs)+" / "+span(theirs/time.Duration(len(all)))+" each",
			fmt.Sprintf("%.2f× as fast", theirs.Seconds()/ours.Seconds()), "")
	}
	return res, nil
}

// spots lists the processes of a business.
func spots(b *topology.Business) (all []topology.Spot) {
	for i := range b.Sets {
		for j := range b.Sets[i].Modules {
			module := &b.Sets[i].Modules[j]
			for k := range module.Instances {
				all = append(all, topology.Spot{Set: &b.Sets[i], Module: module, Service: &module.Instances[k],
					Process: &module.Instances[k].Processes[0]})
			}
		}
	}
	return all
}

func contexts(tree *topology.Tree, all []topology.Spot, now time.Time) []*mako.Context {
	out := make([]*mako.Context, len(all))
	for i, spot := range all {
		out[i] = tree.Context(spot, 1, i+1, now)
	}
	return out
}

// render loads a template and renders it for all processes. The time includes that of making the contexts.
func render(ctx context.Context, tree *topology.Tree, all []topology.Spot, text string, now time.Time) (took time.Duration, sum string,
	bytes int, err error) {
	hash := sha256.New()
	begin := time.Now()
	template, err := mako.Load(text, func(string) (string, error) { return "", nil }, mako.DefaultLimits())
	if err != nil {
		return 0, "", 0, err
	}
	for i, spot := range all {
		out, err := template.Render(ctx, tree.Context(spot, 1, i+1, now), mako.DefaultLimits())
		if err != nil {
			return 0, "", 0, err
		}
		hash.Write([]byte(out))
		bytes += len(out)
	}
	return time.Since(begin), hex.EncodeToString(hash.Sum(nil)), bytes, nil
}

// xmlOf is a tree as XML.
func xmlOf(b *strings.Builder, e *mako.Element) {
	b.WriteString("<" + e.Tag)
	for _, a := range e.Attributes {
		b.WriteString(" " + a.Name + `="` + html.EscapeString(a.Value) + `"`)
	}
	b.WriteString(">")
	for _, child := range e.Children {
		xmlOf(b, child)
	}
	b.WriteString("</" + e.Tag + ">")
}

// span formats a duration with three digits.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}
