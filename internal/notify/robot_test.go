package notify_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

const robotSecret = "SEC000000000000000000"

// hmac256 is the signature of DingTalk and Feishu, in base64.
func hmac256(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// hostile is what a process or a caller may write: markup, mentions, links, control characters, much of it.
const hostile = "<@all> <!channel> **bold** [free](http://evil.example) `code` # head\r\n\x1b[31m\u202e &lt; "

// fields are the fields of a JSON object, which must not be others.
func fields(t *testing.T, v any, names ...string) map[string]any {
	t.Helper()
	m, ok := v.(map[string]any)
	if !ok || len(m) != len(names) {
		t.Fatalf("want the fields %v: %v", names, v)
	}
	for _, n := range names {
		if _, ok := m[n]; !ok {
			t.Fatalf("no field %s: %v", n, v)
		}
	}
	return m
}

// fresh reports whether a time is of now.
func fresh(text string, unit time.Duration) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && time.Since(time.Unix(0, n*int64(unit))).Abs() < time.Minute
}

// TestRobots: messages to WeCom, DingTalk, Feishu and Slack have the documented forms, sizes and signatures, in English and
// Chinese, and nothing hostile in them is markup or a mention.
func TestRobots(t *testing.T) {
	for _, c := range []struct {
		kind   record.ReceiverKind
		answer string
		secret string
		check  func(t *testing.T, path string, body any) (text string, markdown bool)
	}{
		{record.ReceiverWeCom, `{"errcode":0,"errmsg":"ok"}`, "", func(t *testing.T, path string, body any) (string, bool) {
			if path != "/send?key=k" {
				t.Errorf("the path is %s", path)
			}
			m := fields(t, body, "msgtype", "markdown")
			text := fields(t, m["markdown"], "content")["content"].(string)
			if m["msgtype"] != "markdown" || len(text) > 4096 {
				t.Errorf("%d bytes of %v", len(text), m["msgtype"])
			}
			return text, true
		}},
		{record.ReceiverDingTalk, `{"errcode":0,"errmsg":"ok"}`, robotSecret, func(t *testing.T, path string, body any) (string, bool) {
			u, err := url.Parse(path)
			if err != nil {
				t.Fatal(err)
			}
			at := u.Query().Get("timestamp")
			if u.Query().Get("key") != "k" || !fresh(at, time.Millisecond) || u.Query().Get("sign") != hmac256(robotSecret, at+"\n"+robotSecret) {
				t.Errorf("the signature is wrong: %s", path)
			}
			m := fields(t, body, "msgtype", "markdown")
			md := fields(t, m["markdown"], "title", "text")
			text := md["text"].(string)
			if m["msgtype"] != "markdown" || md["title"] == "" || len(text) > 20_000 {
				t.Errorf("%d bytes of %v", len(text), m["msgtype"])
			}
			return text, true
		}},
		{record.ReceiverFeishu, `{"code":0,"msg":"success","data":{}}`, robotSecret, func(t *testing.T, _ string, body any) (string, bool) {
			m := fields(t, body, "msg_type", "content", "timestamp", "sign")
			at := m["timestamp"].(string)
			if !fresh(at, time.Second) || m["sign"] != hmac256(at+"\n"+robotSecret, "") || m["msg_type"] != "post" {
				t.Errorf("the signature is wrong: %v", m)
			}
			post := fields(t, m["content"], "post")["post"].(map[string]any)
			text := ""
			for language, v := range post {
				if language != "en_us" && language != "zh_cn" {
					t.Errorf("the language is %s", language)
				}
				p := fields(t, v, "title", "content")
				text += p["title"].(string)
				for _, line := range p["content"].([]any) {
					e := fields(t, line.([]any)[0], "tag", "text")
					if e["tag"] != "text" {
						t.Errorf("a part is %v", e["tag"])
					}
					text += "\n" + e["text"].(string)
				}
			}
			if b, _ := json.Marshal(body); len(b) > 20<<10 {
				t.Errorf("the request has %d bytes", len(b))
			}
			return text, false
		}},
		{record.ReceiverSlack, "ok", "", func(t *testing.T, _ string, body any) (string, bool) {
			m := fields(t, body, "text", "blocks")
			if strings.ContainsAny(m["text"].(string), "<>") {
				t.Errorf("the text has markup: %v", m["text"])
			}
			all := ""
			for i, b := range m["blocks"].([]any) {
				x := fields(t, b, "type", "text")
				text := fields(t, x["text"], "type", "text", "emoji")
				s := text["text"].(string)
				if text["type"] != "plain_text" || text["emoji"] != false || x["type"] == "header" && utf8.RuneCountInString(s) > 150 ||
					utf8.RuneCountInString(s) > 3000 || i > 49 {
					t.Errorf("block %d: %v", i, x)
				}
				all += s + "\n"
			}
			return all, false
		}},
	} {
		for _, language := range []string{"en", "zh"} {
			t.Run(string(c.kind)+"/"+language, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				b := newBox(t, c.answer)
				id := r.receiver(record.Receiver{Name: "robot", Kind: c.kind, Settings: record.ReceiverSettings{URL: b.URL + "/send?key=k",
					Secret: c.secret, Language: language}})
				r.subscribe(record.SubscriptionSpec{Name: "s", Receivers: []string{id}, Wait: time.Second, Kinds: []string{"policy_changed"}})
				r.run()

				var events []record.Event
				for i := range 60 {
					e := event(gozzard.EventPolicyChanged, fmt.Sprint("agent", i), "", strings.Repeat(hostile, 40))
					e.Key = gozzard.Key{Namespace: "shop", Name: hostile}
					events = append(events, e)
				}
				r.happen(events...)
				r.until("a message", func() bool { return len(b.got()) == 1 })
				var body any
				if err := json.Unmarshal([]byte(b.got()[0]), &body); err != nil {
					t.Fatal(err)
				}
				text, markdown := c.check(t, b.paths[0], body)

				word := map[string]string{"en": "policy of the host changed", "zh": "主机策略变更"}[language]
				if !utf8.ValidString(text) || !strings.Contains(text, word) || strings.ContainsAny(text, "\r\x1b\u202e") ||
					!strings.Contains(text, "60") {
					t.Errorf("the text is %q", text)
				}
				mark := map[string]string{"en": "[Gozzard] firing 60: ", "zh": "【Gozzard】60 条告警："}[language]
				if !strings.HasPrefix(strings.TrimPrefix(text, "**"), mark) {
					t.Errorf("the text does not begin with %q: %q", mark, text)
				}
				ours := strings.NewReplacer("\n> ", "\n", "**", "", "[Gozzard] ", "", "[firing] ", "")
				if rest := ours.Replace(text); markdown &&
					(strings.ContainsAny(rest, "<>`[]*@#") || strings.Count(text, "**") != 2) {
					t.Errorf("the text has markup: %q", text)
				}
			})
		}
	}
}

// TestRobotThatRejects: a service that answers 200 with an error has not taken the message: it comes again.
func TestRobotThatRejects(t *testing.T) {
	r := newRig(t)
	b := newBox(t, `{"errcode":45009,"errmsg":"api freq out of limit"}`)
	id := r.receiver(record.Receiver{Name: "robot", Kind: record.ReceiverWeCom, Settings: record.ReceiverSettings{URL: b.URL}})
	r.subscribe(record.SubscriptionSpec{Name: "s", Receivers: []string{id}, Wait: time.Second})
	r.run()
	r.happen(event(gozzard.EventCrashLoop, "a", "web", "crash loop"))
	r.until("the second try", func() bool { return len(b.got()) >= 2 })
	b.mu.Lock()
	b.answer = `{"errcode":0,"errmsg":"ok"}`
	b.mu.Unlock()
	r.until("the message is delivered", func() bool {
		n, err := r.store.Backlogs(t.Context())
		return err == nil && n[id].Waiting == 0
	})
}

// TestFeishuTest: a test message to Feishu has a line, which Feishu wants, and the mark of its language.
func TestFeishuTest(t *testing.T) {
	for language, want := range map[string]string{"en": "[Gozzard] This is a test message: the receiver works",
		"zh": "【Gozzard】这是一条测试消息：该接收方工作正常"} {
		r := newRig(t)
		b := newBox(t, `{"code":0,"msg":"success"}`)
		id := r.receiver(record.Receiver{Name: "robot", Kind: record.ReceiverFeishu, Settings: record.ReceiverSettings{URL: b.URL,
			Language: language}})
		r.run()
		if _, _, err := r.engine.Test(t.Context(), r.admin, id); err != nil {
			t.Fatal(err)
		}
		if got := b.got(); len(got) != 1 || !strings.Contains(got[0], `"content":[[{"tag":"text","text":"`+want+`"}]]`) {
			t.Errorf("the message is %q", got)
		}
	}
}
