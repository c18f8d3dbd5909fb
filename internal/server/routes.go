package server

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/api"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/console"
	"github.com/gozzard/gozzard/internal/docsite"
)

// Route is one method of one path, with the door that answers it.
type Route struct {
	Method string
	Path   string // a part in braces is a parameter
	Door   string
	Name   string // under which metrics count its requests
	Open   bool   // no credentials are needed, at least from this machine
}

// door is a family of routes.
type door struct {
	name    string
	routes  []Route
	handler http.Handler
	owns    func(r *http.Request) bool // whether the door answers a request
}

// nativePrefix is where all paths belong to the native API, known or not.
const nativePrefix = "/api/v1/"

// nativeDoor is our own API. Outside its prefix it owns the paths of its table.
func nativeDoor(h http.Handler) door {
	d := door{name: api.Door, handler: h}
	fixed := map[string]bool{}
	for _, r := range api.Routes() {
		d.routes = append(d.routes, Route{Method: r.Method, Path: r.Path, Door: d.name, Name: r.Path, Open: r.Open()})
		if !strings.HasPrefix(r.Path, nativePrefix) {
			fixed[r.Path] = true
		}
	}

	d.owns = func(r *http.Request) bool {
		return strings.HasPrefix(r.URL.Path, nativePrefix) || fixed[r.URL.Path]
	}
	return d
}

// consoleDoor is the page for people.
func consoleDoor(h http.Handler) door {
	return pageDoor(console.Door, h, console.Owns, console.Routes())
}

// docsDoor is the documentation.
func docsDoor(h http.Handler) door { return pageDoor(docsite.Door, h, docsite.Owns, docsite.Routes()) }

// pageDoor has pages that a browser opens without credentials.
func pageDoor(name string, h http.Handler, owns func(path string) bool, paths []string) door {
	d := door{name: name, handler: h, owns: func(r *http.Request) bool { return owns(r.URL.Path) }}
	for _, path := range paths {
		d.routes = append(d.routes, Route{Method: http.MethodGet, Path: path, Door: d.name, Name: path, Open: true})
	}
	return d
}

// bluekingDoor is one of BlueKing's APIs.
func bluekingDoor(name string, h *blueking.Handler) door {
	d := door{name: name, handler: h, owns: h.Owns}
	for _, s := range h.Served() {
		d.routes = append(d.routes, Route{Method: s.Method, Path: s.Path, Door: name, Name: s.Name})
	}
	return d
}

// router sends each request to its door. The last door answers what no door owns, in its own words.
//
// http.ServeMux is not used here: it answers double slashes with a redirect, and a redirect drops the body of a POST.
type router []door

// newRouter puts doors together. It rejects doors of which two want the same path, and a route that its door would
// never receive.
func newRouter(doors ...door) (router, error) {
	rt := router(doors)
	owners, known := map[string]string{}, map[string]bool{}
	for _, r := range rt.routes() {
		path := parameter.ReplaceAllString(r.Path, "{}")
		call := r.Method + " " + path
		if known[call] && owners[path] == r.Door {
			return nil, fmt.Errorf("cannot serve %s %s: it is in the table twice", r.Method, r.Path)
		}
		known[call] = true

		if owner := cmp.Or(owners[path], r.Door); owner != r.Door {
			return nil, fmt.Errorf("cannot serve %s %s: both %s and %s own its path", r.Method, r.Path, owner, r.Door)
		}
		owners[path] = r.Door

		if got := rt.find(r.sample()).name; got != r.Door {
			return nil, fmt.Errorf("cannot serve %s %s of %s: the request would go to %s", r.Method, r.Path, r.Door, got)
		}
	}
	return rt, nil
}

func (rt router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := rt.find(r)
	o := gozzard.OriginOf(r.Context())
	o.Door = d.name
	d.handler.ServeHTTP(w, r.WithContext(gozzard.WithOrigin(r.Context(), o)))
}

// find is the door of a request.
func (rt router) find(r *http.Request) *door {
	for i := range rt {
		if rt[i].owns(r) {
			return &rt[i]
		}
	}
	return &rt[len(rt)-1]
}

// routes are all routes, door by door.
func (rt router) routes() (all []Route) {
	for _, d := range rt {
		all = append(all, d.routes...)
	}
	return all
}

var parameter = regexp.MustCompile(`\{[^}]*\}`)

// Sample is a path that the route matches.
func (r Route) Sample() string { return parameter.ReplaceAllString(r.Path, "1") }

// sample is a request to the route.
func (r Route) sample() *http.Request {
	return &http.Request{Method: r.Method, URL: &url.URL{Path: r.Sample()}}
}
