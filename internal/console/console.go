package console

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Door is the name of the console in the table of routes.
const Door = "console"

// The paths of the console.
const (
	Prefix = "/console/"
	assets = Prefix + "assets/"
	enter  = Prefix + "enter" // of one-time links
)

//go:embed all:dist
var dist embed.FS

// policy allows the page's own files only: no code inside the page, and no request to another host.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// missing is the page of a program that was built without the console.
const missing = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gozzard</title></head>
<body><h1>Gozzard</h1>
<p>This program was built without the console. Build it with "make build" where Node and npm are installed.</p>
<p lang="zh-CN">此程序构建时未包含控制台。请在装有 Node 和 npm 的机器上运行 “make build”。</p>
<p>The API is at <a href="/api/v1/openapi.json">/api/v1/openapi.json</a>, and the command line works.</p>
</body></html>
`

// foreign is the answer to a one-time link that a page of another origin opens: that page could sign the browser in as
// another person, and the victim would work, or type secrets, in the account of an attacker.
const foreign = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Gozzard</title></head>
<body><h1>Gozzard</h1>
<p>A page of another site opened this link. It may be the link of another person, so it was not used. If you made it,
copy it into the address bar.</p>
<p lang="zh-CN">这个链接由其他网站的页面打开，可能属于别人，因此没有使用。如果链接是您自己生成的，请把它复制到地址栏中打开。</p>
</body></html>
`

// Console serves the files of the page. Everything that the page shows comes from the native API.
type Console struct {
	page  file
	files map[string]file // by name below assets
	built bool

	observe Observe
}

// file is one file of the page, in both forms.
type file struct {
	plain  []byte
	zipped func() []byte // nil: it is not smaller
	kind   string        // media type
}

// New serves the page that was built into the program. observe is called for every request, with the name of its route; it
// may be nil.
func New(observe Observe) *Console {
	c := *embedded()
	c.observe = observe
	return &c
}

// Observe counts a request.
type Observe func(route string, status int, took time.Duration)

// Routes are the routes of the console.
func Routes() []string { return []string{"/", strings.TrimSuffix(Prefix, "/"), Prefix + "{view}"} }

// routeOf is the route of a path that the console owns.
func routeOf(path string) string {
	if strings.HasPrefix(path, Prefix) {
		return Prefix + "{view}"
	}
	return path
}

// embedded reads the page once.
var embedded = sync.OnceValue(func() *Console {
	c, err := read(dist)
	if err != nil { // the files are part of the program
		panic("console: cannot read the embedded files: " + err.Error())
	}
	return c
})

// read reads a folder that web/build.mjs has written.
func read(from fs.FS) (*Console, error) {
	c := &Console{page: newFile("index.html", []byte(missing)), files: map[string]file{}}

	err := fs.WalkDir(from, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		switch rest := strings.TrimPrefix(name, "dist/"); {
		case rest == "index.html":
			c.page, c.built = newFile(rest, content), true
		case strings.HasPrefix(rest, "assets/"):
			c.files[path.Base(rest)] = newFile(rest, content)
		}
		return nil
	})
	return c, err
}

func newFile(name string, content []byte) file {
	f := file{plain: content, kind: mime.TypeByExtension(path.Ext(name)),
		zipped: sync.OnceValue(func() []byte { return zip(content) })}
	switch path.Ext(name) { // the table of the machine may have other words
	case ".js":
		f.kind = "text/javascript; charset=utf-8"
	case ".css":
		f.kind = "text/css; charset=utf-8"
	case ".html":
		f.kind = "text/html; charset=utf-8"
	case ".svg":
		f.kind = "image/svg+xml"
	}

	return f
}

// zip compresses a file when it is first asked for: that takes longer than all the rest of the start of a server. The
// result is nil if it is not smaller.
func zip(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(content)                               // a buffer takes everything
	_ = z.Close()
	if b.Len() >= len(content) {
		return nil
	}
	return b.Bytes()
}

// Built reports whether the program has the page in it.
func (c *Console) Built() bool { return c.built }

// Owns reports whether a path belongs to the console.
func Owns(p string) bool {
	return p == "/" || p == strings.TrimSuffix(Prefix, "/") || strings.HasPrefix(p, Prefix)
}

// ServeHTTP answers with the page for every address below Prefix: the page itself finds the view of an address.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	status := c.serve(w, r)
	if c.observe != nil {
		c.observe(routeOf(r.URL.Path), status, time.Since(began))
	}
}

// serve answers a request and returns the status of the answer.
func (c *Console) serve(w http.ResponseWriter, r *http.Request) (status int) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")

	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the console has the methods GET and HEAD; the API is below /api/", http.StatusMethodNotAllowed)
		return http.StatusMethodNotAllowed
	case !strings.HasPrefix(r.URL.Path, Prefix):
		h.Set("Location", Prefix)
		h.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusFound)
		return http.StatusFound
	case strings.HasPrefix(r.URL.Path, assets):
		f, ok := c.files[strings.TrimPrefix(r.URL.Path, assets)]
		if !ok {
			h.Set("Cache-Control", "no-store") // a page of another version asks for files that are gone
			http.Error(w, "there is no such file of the console: load the page again", http.StatusNotFound)
			return http.StatusNotFound
		}
		h.Set("Cache-Control", "public, max-age="+strconv.Itoa(int((365*24*time.Hour).Seconds()))+", immutable")
		f.send(w, r)
	case r.URL.Path == enter && !ownNavigation(r):
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, foreign) // the client has gone
		return http.StatusForbidden
	default:
		h.Set("Cache-Control", "no-cache")
		c.page.send(w, r)
	}
	return http.StatusOK
}

// ownNavigation reports whether a person or a page of this server opens an address. Old browsers do not say it.
func ownNavigation(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "none" || site == "same-origin"
}

// send answers with a file.
func (f *file) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")

	content := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		if zipped := f.zipped(); zipped != nil {
			h.Set("Content-Encoding", "gzip")
			content = zipped
		}
	}

	h.Set("Content-Length", strconv.Itoa(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // the client has gone
	}
}
