package docsite

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozzard/gozzard/docs"
)

// Door is the name of the documentation in the table of routes.
const Door = "docs"

// The paths of the documentation.
const (
	Prefix   = "/docs/"
	pictures = Prefix + "pictures/"
	style    = Prefix + "style.css"
)

// policy allows the style and the pictures of the documentation, and no script at all.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Observe counts a request.
type Observe func(route string, status int, took time.Duration)

// Site serves the pages.
type Site struct {
	books   map[string]*book // by language
	files   fs.FS
	observe Observe
}

// book has the pages of one language.
type book struct {
	language string
	pages    map[string]*page // by name, "" is the first page
	groups   []group          // the list of all pages beside a page
	find     func() *index
}

// New serves the pages that were built into the program. observe is called for every request, with the name of its route; it may
// be nil.
func New(observe Observe) *Site {
	s := *embedded()
	s.observe = observe
	return &s
}

// embedded reads the pages once.
var embedded = sync.OnceValue(func() *Site {
	s, err := read(docs.Files)
	if err != nil { // the files are part of the program
		panic("docsite: " + err.Error())
	}
	return s
})

// The routes of pages and of searches.
const (
	pageRoute   = Prefix + "{language}/{page}"
	searchRoute = Prefix + "{language}/search"
)

// Routes are the routes of the documentation.
func Routes() []string {
	return []string{strings.TrimSuffix(Prefix, "/"), Prefix, style, pictures + "{name}", searchRoute, pageRoute}
}

// routeOf is the route of a path that the documentation owns.
func routeOf(p string) string {
	switch {
	case p == Prefix || p == strings.TrimSuffix(Prefix, "/") || p == style:
		return p
	case strings.HasPrefix(p, pictures):
		return pictures + "{name}"
	case strings.Count(p, "/") == 3 && strings.HasSuffix(p, "/search"):
		return searchRoute
	}
	return pageRoute
}

// Owns reports whether a path belongs to the documentation.
func Owns(p string) bool { return p == strings.TrimSuffix(Prefix, "/") || strings.HasPrefix(p, Prefix) }

// ServeHTTP answers with a page.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	status := s.serve(w, r)
	if s.observe != nil {
		s.observe(routeOf(r.URL.Path), status, time.Since(began))
	}
}

// serve answers a request, and returns the status of the answer.
func (s *Site) serve(w http.ResponseWriter, r *http.Request) (status int) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-cache")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the documentation has the methods GET and HEAD; the API is below /api/", http.StatusMethodNotAllowed)
		return http.StatusMethodNotAllowed
	}

	path, below := strings.CutPrefix(r.URL.Path, Prefix)
	if !below || path == "" {
		h.Set("Vary", "Accept-Language")
		return redirect(w, Prefix+wanted(r)+"/")
	}
	if r.URL.Path == style {
		return send(w, r, http.StatusOK, "text/css; charset=utf-8", styleText)
	}
	if name, ok := strings.CutPrefix(r.URL.Path, pictures); ok {
		return s.picture(w, r, name)
	}

	language, name, _ := strings.Cut(path, "/")
	b := s.books[language]
	if b == nil {
		return s.missing(w, r, s.books[wanted(r)])
	}
	if name == "search" {
		return s.search(w, r, b)
	}
	return s.page(w, r, b, name)
}

// wanted is the language that a browser asks for first, of those that there are.
func wanted(r *http.Request) string {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Language"), ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		tag, _, _ = strings.Cut(strings.ToLower(tag), "-")
		if _, known := words[tag]; known {
			return tag
		}
	}
	return english
}

// page answers with a page. Names as in the source (NAME.md) lead to it, too.
func (s *Site) page(w http.ResponseWriter, r *http.Request, b *book, name string) int {
	if short, ok := strings.CutSuffix(name, ".md"); ok {
		return redirect(w, pathOf(b.language, strings.TrimSuffix(strings.TrimSuffix(short, "README"), "/")))
	}
	p := b.pages[name]
	if p == nil {
		if other := s.books[english].pages[name]; other != nil { // some pages are in English only
			return redirect(w, pathOf(english, name))
		}
		return s.missing(w, r, b)
	}
	return send(w, r, http.StatusOK, html, s.whole(b, p))
}

// missing answers that there is no such page.
func (s *Site) missing(w http.ResponseWriter, r *http.Request, b *book) int {
	return send(w, r, http.StatusNotFound, html, s.note(b, b.say("There is no such page"), r.URL.Path))
}

// picture answers with a picture.
func (s *Site) picture(w http.ResponseWriter, r *http.Request, name string) int {
	content, err := fs.ReadFile(s.files, "pictures/"+name)
	if err != nil {
		return s.missing(w, r, s.books[wanted(r)])
	}
	return send(w, r, http.StatusOK, "image/png", content)
}

const html = "text/html; charset=utf-8"

func redirect(w http.ResponseWriter, to string) int {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusFound)
	return http.StatusFound
}

// send answers with a text, compressed if the browser can read that.
func send(w http.ResponseWriter, r *http.Request, status int, kind string, content []byte) int {
	h := w.Header()
	h.Set("Content-Type", kind)
	if strings.HasPrefix(kind, "text/") {
		h.Add("Vary", "Accept-Encoding")
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			content = zip(content)
		}
	}

	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the client has gone
	}
	return status
}

func zip(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is valid
	_, _ = z.Write(content)                         // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// pathOf is the address of a page.
func pathOf(language, name string) string { return Prefix + cmp.Or(language, english) + "/" + name }
