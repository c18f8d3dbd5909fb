//go:build linux

package console_test

import (
	"maps"
	"net/url"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/test/console"
)

// walkBusiness is a document of one process on one host.
const walkBusiness = `biz: ID
name: NAME
clouds: [{id: 0, name: default}]
sets:
  - id: ID1
    name: SETNAME
    env: 3
    modules:
      - id: ID2
        name: MODULE
        instances:
          - id: ID3
            name: INSTANCE
            host: {ip: HOST, cloud: 0}
            processes:
              - {id: ID4, name: PROCESS, func_name: sleep, user: ACCOUNT, work_path: /, start_check_secs: 1, start_cmd: COMMAND}
`

// pagesOf are the addresses of all pages, by the patterns of the router. A page that is not here fails the test.
func pagesOf(t *testing.T, f *console.Fleet, biz, namespace, process, person string) map[string]string {
	t.Helper()
	tasks, err := f.Client.Tasks(t.Context(), client.TaskQuery{}, 1)
	if err != nil || len(tasks.Tasks) == 0 {
		t.Fatalf("tasks %+v, %v", tasks, err)
	}
	pages := map[string]string{"/": "/", "/processes": "/processes", "/register": "/register", "/businesses": "/businesses",
		"/tasks": "/tasks", "/hosts": "/hosts", "/releases": "/releases", "/people": "/people", "/requests": "/requests",
		"/audit": "/audit", "/server": "/server", "/account": "/account",
		"/process/:space/:name": "/process/" + url.PathEscape(namespace) + "/" + url.PathEscape(process),
		"/businesses/:biz":      "/businesses/" + biz,
		"/tasks/:id":            "/tasks/" + url.PathEscape(tasks.Tasks[0].ID),
		"/hosts/:agent":         "/hosts/" + string(f.Process(t, process).Host.Agent),
		"/people/:name":         "/people/" + url.PathEscape(person)}
	for _, pattern := range console.Routes(t) {
		if pages[pattern] == "" {
			t.Errorf("the walk does not know the page %s: add it", pattern)
		}
	}
	return pages
}

// applyBusiness applies a document of the words of its template, and starts its process.
func applyBusiness(t *testing.T, f *console.Fleet, id int, words ...string) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.NewReplacer(append(words, "ACCOUNT", me.Username)...).Replace(walkBusiness)
	if _, err := f.Client.ApplyTopology(t.Context(), id, []byte(doc), client.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	a, err := f.Client.Operate(t.Context(), client.Operation{Action: "start", Selection: client.Selection{
		BusinessSelection: client.BusinessSelection{Biz: id, Expression: "*.*.*.*.*"}}})
	if err == nil {
		_, err = f.Client.Wait(t.Context(), a.TaskID, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// actions are words of buttons and links that change something.
var actions = regexp.MustCompile(`(?i)\b(start|stop|restart|reload|kill|supervise|unregister|register|edit|save|apply|remove|delete|approve|` +
	`reject|revoke|forget|add|give|disable|enable|retry|roll|publish|make|reset|confirm|withdraw|end|rotate|restore)\b`)

// TestTI3EveryPageOfOthers: every page of the router, by nobody, by a person of another business, and by a person that may only read.
// Nothing foreign is shown, neither names nor counts, and no action is offered.
func TestTI3EveryPageOfOthers(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 2)
	applyBusiness(t, f, 7, "ID", "7", "NAME", "corner", "SETNAME", "front", "MODULE", "web", "INSTANCE", "till_1", "HOST", "127.0.0.1",
		"PROCESS", "till", "COMMAND", "exec sleep 100000")
	applyBusiness(t, f, 2, "ID", "2", "NAME", "crown-shop", "SETNAME", "crown-set", "MODULE", "crown-module", "INSTANCE",
		"crown-instance", "HOST", "127.0.0.2", "PROCESS", "crown", "COMMAND", "exec sleep 100000; echo crown-command")
	f.AddUser(t, "crown-admin", password, client.Grant{Role: "admin"})
	f.AddUser(t, "clerk", password, client.Grant{Role: "operator", Businesses: []int{7}, Accounts: []string{"*"}})
	f.AddUser(t, "reader", password, client.Grant{Role: "viewer"})
	pages := pagesOf(t, f, "2", "GSEKIT_BIZ_2", "crown_1", "crown-admin")

	t.Run("nobody", func(t *testing.T) {
		p := f.Open(t)
		for _, path := range pages {
			p.Go("/console" + path)
			p.Wait("button", "Sign in")
			shows(t, p, path, "crown", "127.0.0.2", "clerk", "till")
			if p.Has("navigation", "") {
				t.Errorf("%s: the menu is shown to nobody", path)
			}
		}
	})

	t.Run("another business", func(t *testing.T) {
		p := f.Open(t)
		p.SignIn("clerk", password)
		p.Wait("navigation", "Pages")
		for _, path := range pages {
			settled(p, path)
			shows(t, p, path, "crown", "127.0.0.2", "reader")
			counts(t, p, path)
			if strings.Count(path, "/") > 1 { // one thing of the other business
				offers(t, p, path, "Register it") // the clerk may register a process of that name in its own business
			}
		}
	})

	t.Run("reader", func(t *testing.T) {
		p := f.Open(t)
		p.SignIn("reader", password)
		p.Wait("navigation", "Pages")
		for _, path := range pages {
			settled(p, path)
			if path != "/account" { // the own password, sessions and tokens
				offers(t, p, path)
			}
		}
		settled(p, pages["/process/:space/:name"])
		p.WaitText("127.0.0.2") // what a reader may see is there
	})
}

// settled opens a page and waits until it has read what it shows.
func settled(p *console.Page, path string) {
	p.Go("/console" + path)
	p.Wait("navigation", "Pages")
	p.WaitSelector(".live-live")
	p.WaitSelector("main h1, main .empty, main .problem, main [role=alert]")
	p.WaitNoSelector("main .loading")
	p.WaitNoText("Loading")
}

// shows fails for every word that is somewhere in the page: in a text, in an attribute, or in a hidden part. What the
// address itself says may be repeated.
func shows(t *testing.T, p *console.Page, path string, words ...string) {
	t.Helper()
	var html string
	p.Eval(`document.documentElement.outerHTML`, &html)
	address, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(address, "/")[1:] {
		if len(part) > 3 {
			html = strings.ReplaceAll(html, part, "")
		}
	}
	for _, word := range words {
		if at := strings.Index(html, word); at >= 0 {
			t.Errorf("%s shows %s: …%s…", path, word, html[max(0, at-150):min(len(html), at+150)])
		}
	}
}

// counts fails when the numbers of the frame count foreign processes.
func counts(t *testing.T, p *console.Page, path string) {
	t.Helper()
	var texts []string
	p.Eval(`[...document.querySelectorAll(".counters a")].map((a) => a.innerText.trim())`, &texts)
	if len(texts) != 1 || !strings.HasSuffix(texts[0], "1") {
		t.Errorf("%s counts %q, want the one process of the business", path, texts)
	}
}

// offers fails when the page has something to press that changes something, except by names.
func offers(t *testing.T, p *console.Page, path string, except ...string) {
	t.Helper()
	var names []string
	p.Eval(`[...document.querySelectorAll("main button, main a.button, main input[type=checkbox], dialog")]
		.map((e) => (e.getAttribute("aria-label") ?? e.innerText ?? "").trim() || e.tagName)`, &names)
	for _, name := range names {
		if actions.MatchString(name) && !slices.Contains(except, name) {
			t.Errorf("%s offers %q", path, name)
		}
	}
}

// TestEveryPageWithOddTexts: markup, marks that turn the direction, very long and Chinese texts are texts on every page, and
// no page becomes wider than a phone by them.
func TestEveryPageWithOddTexts(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	const markup = `<img src=x onerror="hit=1"><script>hit=1</script>&lt;b&gt;`
	long := strings.Repeat("长", 40)
	applyBusiness(t, f, 9, "ID", "9", "NAME", quoted(markup+long), "SETNAME", quoted("<b>שלום</b>"+long), "MODULE", quoted(markup),
		"INSTANCE", quoted("<i>"+strings.Repeat("w", 60)), "HOST", "127.0.0.1", "PROCESS", quoted("商店"+strings.Repeat("w", 50)),
		"COMMAND", quoted("printf '"+markup+`\342\200\256evil\007 `+strings.Repeat("x", 4000)+"' >&2; exit 1"))
	if _, err := f.Client.CreateUserToken(t.Context(), oddUser(t, f, long), markup+strings.Repeat("n", 100), 1); err != nil {
		t.Fatal(err)
	}
	pages := pagesOf(t, f, "9", "GSEKIT_BIZ_9", "商店"+strings.Repeat("w", 50)+"_1", long)

	p := f.Open(t)
	p.EnterByLink()
	p.Size(390, 800)
	more := []string{pages["/process/:space/:name"] + "?tab=log", pages["/process/:space/:name"] + "?tab=events",
		pages["/process/:space/:name"] + "?tab=definition", "/businesses/9?tab=document", "/people?tab=grants", "/hosts?tab=enrol"}
	for _, path := range append(slices.Collect(maps.Values(pages)), more...) {
		settled(p, path)
		narrow(p)
		p.Until(path+" without markup of others", `!window.hit && !document.querySelector("main img, main script, main b, main i")`)
	}
}

// oddUser makes a user with a name.
func oddUser(t *testing.T, f *console.Fleet, name string) string {
	t.Helper()
	f.AddUser(t, name, password, client.Grant{Role: "viewer"})
	return name
}
