package blueking_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/strictjson"
)

func book(t testing.TB) *auth.Directory {
	t.Helper()
	b, err := auth.New(auth.Config{
		Apps: []auth.App{
			{Code: "trusted", Secrets: []auth.Digest{auth.Hash("secret")}, AssertsUsers: true},
			{Code: "plain", Secrets: []auth.Digest{auth.Hash("secret2")}},
		},
		Tokens: []auth.Token{{User: "alice", Digest: auth.Hash("tok/en=")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type seen struct {
	route string
	code  int
}

// door is a small API with one call for each case of these tests.
func door(t testing.TB, log io.Writer) (*blueking.Handler, *[]seen) {
	var observed []seen

	route := func(name string, read bool, max int64,
		h func(context.Context, *blueking.Call) (any, error)) blueking.Route {
		return blueking.Route{Name: name, Families: []string{"f"}, Access: blueking.AccessUser, Read: read,
			MaxBody: max, Handle: h}
	}

	fail := func(err error) func(context.Context, *blueking.Call) (any, error) {
		return func(context.Context, *blueking.Call) (any, error) { return nil, err }
	}

	return blueking.New(blueking.Door{
		Prefixes: []blueking.Prefix{{Path: "/bus/x", Family: "f"}, {Path: "/gate/x", Family: "f", Gateway: true}},
		Routes: []blueking.Route{
			route("who", true, blueking.MaxBody, func(_ context.Context, c *blueking.Call) (any,
				error) {
				return c.Caller, nil
			}),
			route("echo", true, blueking.MaxBody, func(_ context.Context, c *blueking.Call) (any, error) {
				list, text := c.Body.Get("list"), c.Body.Get("text")
				n := list.OptList(10, func(*strictjson.Value) {})
				return map[string]any{"n": n, "text": text.OptStr(), "key": c.IdempotencyKey}, c.Faults.Err()
			}),
			route("large", false, blueking.MaxBodyMulti,
				func(_ context.Context, c *blueking.Call) (any, error) { return c.Caller.User, nil }),
			{Name: "app", Families: []string{"f"}, Access: blueking.AccessApp, MaxBody: blueking.MaxBody,
				Handle: func(_ context.Context, c *blueking.Call) (any, error) { return c.Caller, nil }},
			route("panic", false, blueking.MaxBody, func(context.Context, *blueking.Call) (any,
				error) {
				panic("secret place")
			}),
			route("nan", false, blueking.MaxBody, func(context.Context, *blueking.Call) (any,
				error) {
				return math.NaN(), nil
			}),
			route("internal", false, blueking.MaxBody, fail(errors.New("open /etc/private: no"))),
			route("caused", false, blueking.MaxBody, fail(&gozzard.Error{Kind: gozzard.ErrUnavailable,
				Message: "try later", Cause: errors.New("10.9.8.7 is down")})),
			route("full", false, blueking.MaxBody, fail(gozzard.Errorf(gozzard.ErrStorageFull, "storage full"))),
			route("limited", false, blueking.MaxBody, fail(gozzard.Errorf(gozzard.ErrRateLimited, "slowly"))),
			route("absent", false, blueking.MaxBody, fail(gozzard.Errorf(gozzard.ErrNotFound, "no such task"))),
			route("appless", false, blueking.MaxBody, fail(gozzard.Errorf(gozzard.ErrAppForbidden, "not for you"))),
		},
		Auth: book(t), Log: slog.New(slog.NewJSONHandler(log, nil)),
		Observe: func(route string, code int, _ time.Duration) { observed = append(observed, seen{route, code}) },
	}), &observed
}

var hex32 = regexp.MustCompile(`^[0-9a-f]{32}$`)

type reply struct {
	status int
	header http.Header
	env    map[string]any
}

func do(t testing.TB, h http.Handler, r *http.Request) reply {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	out := reply{status: w.Code, header: w.Header()}
	if err := json.Unmarshal(w.Body.Bytes(), &out.env); err != nil {
		t.Fatalf("answer is not JSON: %v: %.200s", err, w.Body)
	}

	names := len(out.env)
	if _, ok := out.env["code_name"]; ok { // of the gateway
		names--
	}
	for _, name := range []string{"result", "code", "message", "data", "request_id"} {
		if _, ok := out.env[name]; !ok || names != 5 {
			t.Fatalf("envelope has no %s, or has more than five names: %.300s", name, w.Body)
		}
	}

	id, _ := out.env["request_id"].(string)
	if !hex32.MatchString(id) || w.Header().Get("X-Bkapi-Request-Id") != id {
		t.Fatalf("request id %q, header %q", id, w.Header().Get("X-Bkapi-Request-Id"))
	}
	if out.env["result"].(bool) != (out.code() == 0) {
		t.Fatalf("result and code disagree: %s", w.Body)
	}

	return out
}

func (r reply) code() int       { return int(r.env["code"].(float64)) }
func (r reply) message() string { return r.env["message"].(string) }

func post(path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

const good = `"bk_app_code":"trusted","bk_app_secret":"secret","bk_username":"bob"`

func TestCredentials(t *testing.T) {
	h, _ := door(t, io.Discard)
	const azn = "X-Bkapi-Authorization"
	for _, c := range []struct {
		name string
		req  *http.Request
		code int
		user string // app/user/asserted
	}{
		{"body", post("/bus/x/who", `{`+good+`}`), 0, "trusted/bob/true"},
		{"body, old names", post("/bus/x/who", `{"app_code":"trusted","app_secret":"secret","username":"bob"}`), 0,
			"trusted/bob/true"},
		{"body, token", post("/bus/x/who", `{"bk_app_code":"plain","bk_app_secret":"secret2","bk_token":"tok/en="}`),
			0, "plain/alice/false"},
		{"header", post("/bus/x/who", `{}`, azn, `{`+good+`}`), 0, "trusted/bob/true"},
		{"header wins over body", post("/bus/x/who",
			`{"bk_app_code":"plain","bk_app_secret":"wrong","bk_username":"eve"}`, azn, `{`+good+`}`), 0,
			"trusted/bob/true"},
		{"wrong header is not mended by the body", post("/bus/x/who", `{`+good+`}`, azn,
			`{"bk_app_code":"trusted","bk_app_secret":"nope"}`), blueking.CodeGeneral, ""},
		{"header app, body user", post("/bus/x/who", `{"bk_username":"carl"}`, azn,
			`{"bk_app_code":"trusted","bk_app_secret":"secret"}`), 0, "trusted/carl/true"},
		{"plain headers", post("/bus/x/who", `{}`, "X-Bkapi-App-Code", "trusted", "X-Bkapi-App-Secret", "secret",
			"X-Bkapi-User-Name", "bob"), 0, "trusted/bob/true"},
		{"JSON header wins over plain ones", post("/bus/x/who", `{}`, azn, `{`+good+`}`, "X-Bkapi-App-Code", "plain",
			"X-Bkapi-User-Name", "eve"), 0, "trusted/bob/true"},
		{"cookie", post("/bus/x/who", `{"bk_app_code":"plain","bk_app_secret":"secret2"}`, "Cookie",
			"bk_token=tok%2Fen%3D"), 0, "plain/alice/false"},
		{"body user before cookie", post("/bus/x/who", `{`+good+`}`, "Cookie", "bk_token=tok%2Fen%3D"), 0,
			"trusted/bob/true"},
		{"query", httptest.NewRequest("GET", "/bus/x/who?bk_app_code=trusted&bk_app_secret=secret&bk_username=bob",
			nil), 0, "trusted/bob/true"},
		{"app alone", post("/bus/x/app", `{"bk_app_code":"plain","bk_app_secret":"secret2"}`), 0, "plain//false"},
		{"app alone, wrong", post("/bus/x/app", `{"bk_app_code":"plain","bk_app_secret":"secret"}`),
			blueking.CodeGeneral, ""},
		{"malformed header", post("/bus/x/who", `{`+good+`}`, azn, `{"bk_app_code":`), blueking.CodeArgument, ""},
		{"header list", post("/bus/x/who", `{`+good+`}`, azn, `[]`), blueking.CodeArgument, ""},
		{"header numbers", post("/bus/x/who", `{`+good+`}`, azn, `{"bk_app_code":1}`), blueking.CodeArgument, ""},
		{"two headers", post("/bus/x/who", `{}`, azn, `{`+good+`}`, azn, `{`+good+`}`), blueking.CodeArgument, ""},
		{"empty header", post("/bus/x/who", `{`+good+`}`, azn, ``), 0, "trusted/bob/true"},
		{"none", post("/bus/x/who", `{}`), blueking.CodeGeneral, ""},
		{"no secret", post("/bus/x/who", `{"bk_app_code":"trusted","bk_username":"bob"}`), blueking.CodeGeneral, ""},
		{"wrong by one character", post("/bus/x/who", strings.Replace(`{`+good+`}`, "secret", "secreT", 1)),
			blueking.CodeGeneral, ""},
		{"wrong by one character in value", post("/bus/x/who",
			`{"bk_app_code":"trusted","bk_app_secret":"secres","bk_username":"bob"}`), blueking.CodeGeneral, ""},
		{"wrong case of name", post("/bus/x/who",
			`{"BK_App_Code":"trusted","bk_app_secret":"secret","bk_username":"bob"}`), blueking.CodeGeneral, ""},
		{"unknown app", post("/bus/x/who", `{"bk_app_code":"x","bk_app_secret":"secret","bk_username":"bob"}`),
			blueking.CodeGeneral, ""},
		{"bad token", post("/bus/x/who", `{"bk_app_code":"plain","bk_app_secret":"secret2","bk_token":"x"}`),
			blueking.CodeGeneral, ""},
		{"nobody", post("/bus/x/who", `{"bk_app_code":"plain","bk_app_secret":"secret2"}`),
			blueking.CodeOperatorRequired, ""},
		{"nulls and blanks", post("/bus/x/who",
			`{"bk_app_code":"plain","bk_app_secret":"secret2","bk_token":null,"bk_username":""}`),
			blueking.CodeOperatorRequired, ""},
		{"not on the white list", post("/bus/x/who",
			`{"bk_app_code":"plain","bk_app_secret":"secret2","bk_username":"bob"}`), blueking.CodeUserForbidden, ""},
		{"number for a name", post("/bus/x/who", `{"bk_app_code":1,"bk_app_secret":"s","bk_username":"bob"}`),
			blueking.CodeArgument, ""},
		{"user with line break", post("/bus/x/who",
			`{"bk_app_code":"trusted","bk_app_secret":"secret","bk_username":"a\nb"}`), blueking.CodeArgument, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := do(t, h, c.req)
			if r.code() != c.code || r.status != http.StatusOK {
				t.Fatalf("HTTP %d, code %d %q, want %d", r.status, r.code(), r.message(), c.code)
			}
			if strings.Contains(r.message(), "secre") && !strings.Contains(r.message(), "bk_app_secret") {
				t.Fatalf("a secret in %q", r.message())
			}

			if c.code == 0 {
				d := r.env["data"].(map[string]any)
				got := d["app"].(string) + "/" + d["user"].(string) + "/" +
					map[bool]string{true: "true", false: "false"}[d["asserted"].(bool)]
				if got != c.user {
					t.Fatalf("caller %s, want %s", got, c.user)
				}
			} else if r.env["data"] != nil {
				t.Fatalf("data %v", r.env["data"])
			}
		})
	}
}

// TE9: a page of another site can make a browser send the cookie of a login, but the door ignores the cookie.
func TestTE9CookiesOfOtherSites(t *testing.T) {
	h, _ := door(t, io.Discard)
	ask := func(method string, headers ...string) int {
		r := httptest.NewRequest(method, "http://fleet.example/bus/x/who?bk_app_code=plain&bk_app_secret=secret2", nil)
		if method == http.MethodPost {
			r = post("http://fleet.example/bus/x/who", `{"bk_app_code":"plain","bk_app_secret":"secret2"}`)
		}
		r.Header.Set("Cookie", "bk_token=tok%2Fen%3D")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return do(t, h, r).code()
	}

	for name, headers := range map[string][]string{
		"no browser": nil, "own page": {"Sec-Fetch-Site", "same-origin", "Origin", "http://fleet.example"},
		"typed in":                   {"Sec-Fetch-Site", "none"},
		"own page of an old browser": {"Origin", "http://fleet.example"},
	} {
		if code := ask(http.MethodPost, headers...); code != 0 {
			t.Errorf("%s: code %d", name, code)
		}
	}

	for name, headers := range map[string][]string{
		"another site": {"Sec-Fetch-Site", "cross-site"}, "a sister": {"Sec-Fetch-Site", "same-site"},
		"an old browser": {"Origin", "https://evil.example"},
		"a sandbox":      {"Origin", "null"}, "another port": {"Origin", "http://fleet.example:8081"},
	} {
		if code := ask(http.MethodPost, headers...); code != blueking.CodeGeneral {
			t.Errorf("%s: code %d", name, code)
		}
	}

	r := post("http://fleet.example/bus/x/who",
		`{"bk_app_code":"plain","bk_app_secret":"secret2","bk_token":"tok/en="}`, "Origin", "https://portal.example",
		"Cookie", "bk_token=other")
	if got := do(t, h, r); got.code() != 0 { // what no browser sends by itself counts from anywhere
		t.Errorf("a token in the body beside a cookie: code %d %q", got.code(), got.message())
	}
}

func TestGatewayCarriesTheStatus(t *testing.T) {
	var log bytes.Buffer
	h, observed := door(t, &log)
	for _, c := range []struct {
		name, body          string
		code, gated, status int // gated is the code of the gateway, 0 if it is the same
		message             string
	}{
		{"who", `{` + good + `}`, 0, 0, 200, "success"},
		{"who", `{`, blueking.CodeArgument, 0, 400, "line 1"},
		{"who", `{}`, blueking.CodeGeneral, 1640101, 401, "required"},
		{"who", `{"bk_app_code":"plain","bk_app_secret":"wrong"}`, blueking.CodeGeneral, 1640101, 401, "is wrong"},
		{"who", `{"bk_app_code":"plain","bk_app_secret":"secret2","bk_token":"wrong"}`, blueking.CodeGeneral, 1640102, 401, "not valid"},
		{"who", `{"bk_app_code":"plain","bk_app_secret":"secret2"}`, blueking.CodeOperatorRequired, 1640102, 401, ""},
		{"who", `{"bk_app_code":"plain","bk_app_secret":"secret2","bk_username":"b"}`, blueking.CodeUserForbidden,
			1640102, 401, ""},
		{"appless", `{` + good + `}`, blueking.CodeAppForbidden, 0, 403, "not for you"},
		{"absent", `{` + good + `}`, blueking.CodeNotFound, 0, 404, "no such task"},
		{"limited", `{` + good + `}`, blueking.CodeRateLimited, 0, 429, "slowly"},
		{"full", `{` + good + `}`, blueking.CodeGeneral, 0, 500, "storage full"},
		{"internal", `{` + good + `}`, blueking.CodeBackend, 0, 500, "internal error"},
		{"caused", `{` + good + `}`, blueking.CodeBackend, 0, 500, "try later"},
	} {
		bus := do(t, h, post("/bus/x/"+c.name, c.body))
		gate := do(t, h, post("/gate/x/"+c.name, c.body))
		if bus.status != 200 || gate.status != c.status || bus.code() != c.code || gate.code() != cmp.Or(c.gated, c.code) ||
			!strings.Contains(gate.message(), c.message) {
			t.Errorf("%s: bus HTTP %d code %d, gateway HTTP %d code %d %q", c.name, bus.status, bus.code(),
				gate.status, gate.code(), gate.message())
		}
		_, named := gate.env["code_name"]
		if own := c.gated != 0; own != named || own != (gate.header.Get("X-Bkapi-Error-Message") == gate.message()) ||
			own != (gate.header.Get("X-Bkapi-Error-Code") == strconv.Itoa(c.gated)) || bus.env["code_name"] != nil {
			t.Errorf("%s: %v %v", c.name, gate.env, gate.header)
		}
		if strings.Contains(gate.message(), "private") || strings.Contains(gate.message(), "10.9.8.7") {
			t.Errorf("%s: a cause got out: %s", c.name, gate.message())
		}
	}

	if s := log.String(); !strings.Contains(s, "/etc/private") || !strings.Contains(s, "10.9.8.7") ||
		strings.Contains(s, "slowly") {
		t.Errorf("log: %s", s)
	}

	if len(*observed) != 26 || (*observed)[0] != (seen{"who", 0}) {
		t.Errorf("observed %v", *observed)
	}
}

func TestPanicIsAnswered(t *testing.T) {
	var log bytes.Buffer
	h, _ := door(t, &log)
	for _, name := range []string{"panic", "nan"} {
		r := do(t, h, post("/bus/x/"+name, `{`+good+`}`))
		if r.status != 500 || r.code() != blueking.CodeBackend || r.env["data"] != nil ||
			strings.Contains(r.message(), "secret place") {
			t.Errorf("%s: HTTP %d %v", name, r.status, r.env)
		}
	}
	if s := log.String(); !strings.Contains(s, "secret place") || !strings.Contains(s, "cannot encode answer") {
		t.Errorf("log: %s", s)
	}
}

func TestPaths(t *testing.T) {
	h, observed := door(t, io.Discard)
	server := httptest.NewServer(h)
	defer server.Close()

	for path, want := range map[string]int{
		"/bus/x/who": 200, "/bus/x/who/": 200, "//bus//x/who": 200, "/bus/x//who///": 200, "///gate/x/who": 200,
		"/": 404, "/bus/x": 404, "/bus/x/whom": 404, "/bus/x/who/more": 404, "/bus/X/who": 404, "/bus/./x/who": 404,
		"/bus/y/../x/who":       404,
		"/bus/%2e%2e/bus/x/who": 404, "/bus/x/%77ho": 404, "/bus/x/who%00": 404, "/bus/x/who%2f": 404,
		"/bus/x/wh\u00f6": 404, "/bus/x/who;a": 404,
	} {
		status, body := raw(t, server, path, `{`+good+`}`)
		if status != want {
			t.Errorf("%s: HTTP %d, want %d: %s", path, status, want, body)
		}
		if want == 404 && (!strings.Contains(body,
			`"result":false,"code":1306404,"message":"The content does not exist","data":null`)) {
			t.Errorf("%s: %s", path, body)
		}
		r := httptest.NewRequest("POST", "/", nil)
		r.URL = &url.URL{Path: path}
		if u, err := url.ParseRequestURI(path); err == nil {
			r.URL = u
		}
		if h.Owns(r) != (want == 200) {
			t.Errorf("%s: Owns is %v", path, h.Owns(r))
		}
	}

	for _, s := range *observed {
		if s.route != "who" && s.route != "unknown" {
			t.Errorf("observed %v: routes must be few", s)
		}
	}
}

// raw sends a request whose path is not changed by a client library.
func raw(t *testing.T, server *httptest.Server, path, body string) (int, string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}

	defer conn.Close()
	req := "POST " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + itoa(len(body)) +
		"\r\n\r\n" + body
	if _, err := io.WriteString(conn, req); err != nil {
		t.Fatal(err)
	}

	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}

	head, rest, _ := strings.Cut(string(answer), "\r\n\r\n")
	var status int
	for _, c := range strings.Fields(head)[1] {
		status = status*10 + int(c-'0')
	}

	return status, rest
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestMethods(t *testing.T) {
	h, _ := door(t, io.Discard)
	r := do(t, h, httptest.NewRequest("GET", "/bus/x/large?bk_app_code=trusted&bk_app_secret=secret&bk_username=bob",
		nil))
	if r.status != 405 || r.header.Get("Allow") != "POST" || r.code() == 0 {
		t.Errorf("GET of a call that changes something: %d %v", r.status, r.env)
	}

	r = do(t, h, httptest.NewRequest("DELETE", "/bus/x/who", nil))
	if r.status != 405 || r.header.Get("Allow") != "GET, POST" {
		t.Errorf("DELETE: %d %v", r.status, r.env)
	}

	cred := "bk_app_code=trusted&bk_app_secret=secret&bk_username=bob&"
	for query, want := range map[string]string{
		"text=a%22%5C%0A%E7%BD%91&list=%5B1,2%5D": "",
		"text=1&text=2":      "text: given 2 times",
		"list=%5B1,%5D":      "list: not strict JSON: line 1, column 3: a comma before ']' is not allowed",
		"list=12":            `list: must be a list, is the string "12"`,
		"text=%ff":           "not valid UTF-8",
		"text=%zz":           "query string is malformed",
		"list=%7B%7D&text=1": "list: must be a list, is an object",
	} {
		r := do(t, h, httptest.NewRequest("GET", "/bus/x/echo?"+cred+query, nil))
		if want == "" {
			if d := r.env["data"].(map[string]any); d["text"] != "a\"\\\n网" || d["n"] != 2.0 {
				t.Errorf("%s: %v", query, r.env)
			}
		} else if r.code() != blueking.CodeArgument || !strings.Contains(r.message(), want) {
			t.Errorf("%s: %v", query, r.env)
		}
	}
}

func TestBodies(t *testing.T) {
	h, _ := door(t, io.Discard)
	pad := func(n int) string { return `"pad":"` + strings.Repeat("x", n) + `"` }
	header := []string{"X-Bkapi-Authorization", `{` + good + `}`}
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		req  *http.Request
		code int
		want string
	}{
		{"empty", post("/bus/x/who", ``), blueking.CodeArgument, "body is empty"},
		{"null", post("/bus/x/who", `null`), blueking.CodeArgument, "body must be a JSON object, is null"},
		{"list", post("/bus/x/who", `[]`), blueking.CodeArgument, "body must be a JSON object, is a list"},
		{"two documents", post("/bus/x/who", `{`+good+`}{}`), blueking.CodeArgument, "after the end of the document"},
		{"byte order mark", post("/bus/x/who", "\ufeff{"+good+`}`), blueking.CodeArgument, "byte order mark"},
		{"duplicate", post("/bus/x/who", `{`+good+`,"op_type":2,"op_type":9}`), blueking.CodeArgument,
			`duplicate key "op_type"`},
		{"compressed", post("/bus/x/who", `{`+good+`}`, "Content-Encoding", "gzip"), blueking.CodeArgument,
			`Content-Encoding "gzip" is not accepted`},
		{"identity", post("/bus/x/who", `{`+good+`}`, "Content-Encoding", "identity"), 0, ""},
		{"XML", post("/bus/x/who", `{`+good+`}`, "Content-Type", "application/xml; charset=utf-8"),
			blueking.CodeArgument, "send JSON"},
		{"SOAP", post("/bus/x/who", `{`+good+`}`, "Content-Type", "application/soap+XML"), blueking.CodeArgument,
			"send JSON"},
		{"form type", post("/bus/x/who", `{`+good+`}`, "Content-Type", "application/x-www-form-urlencoded"), 0, ""},
		{"1.5 MiB, credentials first", post("/bus/x/who", `{`+good+`,`+pad(mib+mib/2)+`}`), 0, ""},
		{"1.5 MiB, credentials last", post("/bus/x/who", `{`+pad(mib+mib/2)+`,`+good+`}`), blueking.CodeGeneral,
			"first 1 MiB of the body"},
		{"1.5 MiB, credentials last, header", post("/bus/x/who", `{`+pad(mib+mib/2)+`,`+good+`}`, header...), 0, ""},
		{"1.5 MiB, wrong secret", post("/bus/x/who",
			strings.Replace(`{`+good+`,`+pad(mib+mib/2)+`}`, `"secret"`, `"x"`, 1)), blueking.CodeGeneral, "is wrong"},
		{"1.5 MiB of nothing", post("/bus/x/who", strings.Repeat(" ", mib+mib/2)), blueking.CodeArgument,
			"body is empty"},
		{"1.5 MiB after a list", post("/bus/x/who", "[]"+strings.Repeat(" ", mib+mib/2)), blueking.CodeArgument,
			"body must be a JSON object"},
		{"1.5 MiB of brackets", post("/bus/x/who", strings.Repeat("[", mib+mib/2)), blueking.CodeArgument,
			"nested deeper"},
		{"1.5 MiB of rubbish", post("/bus/x/who", strings.Repeat("x", mib+mib/2)), blueking.CodeArgument,
			"where a value is expected"},
		{"5 MiB", post("/bus/x/who", `{`+good+`,`+pad(5*mib)+`}`), blueking.CodeArgument, "body has more than 4 MiB"},
		{"5 MiB, header", post("/bus/x/who", `{`+pad(5*mib)+`}`, header...), blueking.CodeArgument,
			"body has more than 4 MiB"},
		{"5 MiB on a large call", post("/bus/x/large", `{`+good+`,`+pad(5*mib)+`}`), 0, ""},
		{"41 MiB on a large call", post("/bus/x/large", `{`+good+`,`+pad(41*mib)+`}`), blueking.CodeArgument,
			"body has more than 40 MiB"},
		{"credentials twice, far apart", post("/bus/x/large", `{`+good+`,`+pad(2*mib)+`,"bk_username":"eve"}`),
			blueking.CodeArgument, "duplicate key"},
		{"idempotency key", post("/bus/x/echo", `{`+good+`}`, "Idempotency-Key", "a b"), 0, ""},
		{"long idempotency key", post("/bus/x/echo", `{`+good+`}`, "Idempotency-Key", strings.Repeat("k", 256)),
			blueking.CodeArgument, "Idempotency-Key: must be"},
		{"two idempotency keys", post("/bus/x/echo", `{`+good+`}`, "Idempotency-Key", "a", "Idempotency-Key", "b"),
			blueking.CodeArgument, "Idempotency-Key: must be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := do(t, h, c.req)
			if r.code() != c.code || !strings.Contains(r.message(), c.want) || len(r.message()) > 500 {
				t.Fatalf("code %d %.300q, want %d %q", r.code(), r.message(), c.code, c.want)
			}
		})
	}
}

// counter counts how many bytes of a body are read.
type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestStrangersAreNotReadOut(t *testing.T) {
	h, _ := door(t, io.Discard)
	body := `{"bk_app_code":"trusted","bk_app_secret":"x","pad":"` + strings.Repeat("x", 30<<20) + `"}`
	for name, headers := range map[string][2]string{"in the body": {},
		"in a header": {"X-Bkapi-Authorization", `{"bk_app_code":"trusted","bk_app_secret":"x"}`}} {
		c := &counter{Reader: strings.NewReader(body)}
		r := httptest.NewRequest("POST", "/bus/x/large", c)
		if headers[0] != "" {
			r.Header.Set(headers[0], headers[1])
		}
		if got := do(t, h, r); got.code() != blueking.CodeGeneral || c.n > 10<<20 {
			t.Errorf("%s: code %d after %d bytes", name, got.code(), c.n)
		}
	}
}

// TestRefusedBodiesGetTheirAnswer sends bodies over the limit as most clients do: they send the whole body before they
// read the answer.
func TestRefusedBodiesGetTheirAnswer(t *testing.T) {
	h, _ := door(t, io.Discard)
	server := httptest.NewServer(h)
	defer server.Close()
	for _, size := range []int{5 << 20, 7 << 20} {
		for _, c := range []string{good, strings.Replace(good, `"secret"`, `"wrong"`, 1)} {
			status, body := raw(t, server, "/bus/x/who", `{`+c+`,"pad":"`+strings.Repeat("x", size)+`"}`)
			if status != 200 || !strings.Contains(body, `"result":false`) {
				t.Errorf("%d bytes: HTTP %d %s", size, status, body)
			}
		}
	}
}

func TestRouteWithoutAccessPanics(t *testing.T) {
	ok := blueking.Route{Name: "a", Families: []string{"f"}, Access: blueking.AccessUser, MaxBody: 1,
		Handle: func(context.Context, *blueking.Call) (any, error) { return nil, nil }}

	for name, change := range map[string]func(*blueking.Route){
		"access": func(r *blueking.Route) { r.Access = 0 }, "size": func(r *blueking.Route) { r.MaxBody = 0 },
		"handler": func(r *blueking.Route) { r.Handle = nil },
		"name":    func(r *blueking.Route) { r.Name = "" }, "family": func(r *blueking.Route) { r.Families = nil },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a route without %s was taken", name)
				}
			}()
			r := ok
			change(&r)
			blueking.New(blueking.Door{Prefixes: []blueking.Prefix{{Path: "/p", Family: "f"}},
				Routes: []blueking.Route{r}, Auth: book(t), Log: slog.New(slog.DiscardHandler)})
		}()
	}
}

func TestAuthenticateForOtherDoors(t *testing.T) {
	b := book(t)
	caller, app, err := blueking.Authenticate(b, post("/", "", "X-Bkapi-Authorization", `{`+good+`}`), nil)
	if err != nil || caller.User != "bob" || app.Code != "trusted" {
		t.Errorf("%v %v %v", caller, app, err)
	}
	if caller, _, err = blueking.Authenticate(b, post("/", ""), []byte(`{`+good+`}`)); err != nil ||
		caller.User != "bob" {
		t.Errorf("%v %v", caller, err)
	}

	if _, _, err = blueking.Authenticate(b, post("/", ""), nil); gozzard.KindOf(err) != gozzard.ErrUnauthenticated {
		t.Error(err)
	}
	if _, _, err = blueking.Authenticate(b, post("/", ""), []byte(`{`)); gozzard.KindOf(err) != gozzard.ErrInvalid {
		t.Error(err)
	}
}
