package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// The largest texts that the services take, in bytes, with room for what is around them.
const (
	weComText    = 4096
	dingTalkText = 18_000
	feishuText   = 18_000
	slackText    = 2900 // characters of a section
	robotLines   = 20
)

// robot posts messages to a robot of a chat group.
type robot struct {
	r    *record.Receiver
	w    *words
	http *http.Client
	now  func() time.Time
}

func newRobot(e *Engine, r *record.Receiver) (sink, error) {
	c, err := e.dial.client(r.Settings.CA)
	if err != nil {
		return nil, err
	}
	return &robot{r: r, w: e.wordsOf(r.Settings.Language), http: c, now: e.o.Now}, nil
}

func (h *robot) Close() { h.http.CloseIdleConnections() }

func (h *robot) Repeat(context.Context, []Message) error { return nil }

// Send posts a message in the form of the service, and checks its answer: most services answer 200 also when they reject a
// message.
func (h *robot) Send(ctx context.Context, m *Message) error {
	to, content := h.r.Settings.URL, any(nil)
	var err error
	switch h.r.Kind {
	case record.ReceiverWeCom:
		content = h.weCom(m)
	case record.ReceiverDingTalk:
		content = h.dingTalk(m)
		to, err = h.dingTalkURL()
	case record.ReceiverFeishu:
		content = h.feishu(m)
	default:
		content = h.slack(m)
	}
	if err != nil {
		return rejected{err}
	}

	body, err := json.Marshal(content)
	if err != nil {
		return rejected{fmt.Errorf("cannot encode the message: %w", err)}
	}
	req, err := post(ctx, h.r, to, body)
	if err != nil {
		return err
	}
	answer, err := do(h.http, req)
	if err != nil || h.r.Kind == record.ReceiverSlack {
		return err
	}
	return accepted(answer)
}

// accepted reads the answer of a service: errcode of WeCom and DingTalk, code of Feishu.
func accepted(answer []byte) error {
	var a struct {
		ErrCode *int   `json:"errcode"`
		ErrMsg  string `json:"errmsg"`
		Code    *int   `json:"code"`
		Msg     string `json:"msg"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.ErrCode == nil && a.Code == nil {
		return errors.New("the receiver answers something else than the service does")
	}
	if a.ErrCode != nil && *a.ErrCode != 0 {
		return fmt.Errorf("the service rejects the message: %d %s", *a.ErrCode, clean(a.ErrMsg, 200))
	}
	if a.Code != nil && *a.Code != 0 {
		return fmt.Errorf("the service rejects the message: %d %s", *a.Code, clean(a.Msg, 200))
	}
	return nil
}

// markdown is a message as Markdown of at most max bytes. Whole lines are left out if there are too many.
func (h *robot) markdown(m *Message, max int) string {
	head := "**" + h.plainLine(title(h.w, m, 300)) + "**"
	list := lines(h.w, m, robotLines)
	if m.Test {
		list = nil
	}
	for n := len(list); ; n-- {
		text := head
		shown := list
		if n < len(list) {
			shown = append(append([]string{}, list[:n]...), fmt.Sprintf(h.w.left, m.Total()-n))
		}
		for _, l := range shown {
			text += "\n> " + h.plainLine(l)
		}
		if len(text) <= max || n == 0 {
			return cut(text, max)
		}
	}
}

// plainLine is a title or a line whose text means nothing in Markdown. The mark at its beginning is of this package, and
// stays.
func (h *robot) plainLine(s string) string {
	mark, text, marked := strings.Cut(s, h.w.closing)
	if !marked {
		return plain(s)
	}
	return mark + h.w.closing + plain(text)
}

// plain makes a text mean nothing in Markdown: what would begin a link, a mention, code or an emphasis becomes the
// similar character of full width. These services have no way to escape one. Parentheses mean something after a bracket
// only.
func plain(s string) string {
	return strings.NewReplacer("<", "＜", ">", "＞", "`", "｀", "*", "＊", "[", "［", "]", "］", "~", "～",
		"#", "＃", "@", "＠", "|", "｜", "\\", "＼", "!", "！").Replace(s)
}

// weCom is the message of a WeCom group robot.
func (h *robot) weCom(m *Message) any {
	return map[string]any{"msgtype": "markdown", "markdown": map[string]any{"content": h.markdown(m, weComText)}}
}

// dingTalk is the message of a DingTalk robot.
func (h *robot) dingTalk(m *Message) any {
	// its Markdown joins lines that have no empty line between them
	text := strings.ReplaceAll(h.markdown(m, dingTalkText), "\n", "\n\n")
	return map[string]any{"msgtype": "markdown", "markdown": map[string]any{
		"title": h.plainLine(title(h.w, m, 120)), "text": text}}
}

// dingTalkURL is the address with the signature: HMAC-SHA256 of the time in milliseconds, a line break and the secret, by
// the secret.
func (h *robot) dingTalkURL() (string, error) {
	u, err := url.Parse(h.r.Settings.URL)
	if err != nil {
		return "", errors.New("the URL of the robot is not valid")
	}
	if secret := h.r.Settings.Secret; secret != "" {
		at := strconv.FormatInt(h.now().UnixMilli(), 10)
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(at + "\n" + secret))
		q := u.Query()
		q.Set("timestamp", at)
		q.Set("sign", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		u.RawQuery = q.Encode()
	}
	return u.String(), nil
}

// feishu is the message of a Feishu robot: rich text, whose parts are plain. Its signature is the HMAC-SHA256 of nothing,
// by the time in seconds, a line break and the secret.
func (h *robot) feishu(m *Message) any {
	language := "en_us"
	if h.r.Settings.Language == chinese {
		language = "zh_cn"
	}
	content, size := [][]any{}, 0
	for _, l := range lines(h.w, m, robotLines) {
		if size += len(l) + 64; size > feishuText || m.Test {
			break
		}
		content = append(content, []any{map[string]string{"tag": "text", "text": l}})
	}
	if len(content) == 0 { // Feishu takes no message without a line, and a test has none
		content = append(content, []any{map[string]string{"tag": "text", "text": title(h.w, m, 300)}})
	}
	body := map[string]any{"msg_type": "post", "content": map[string]any{"post": map[string]any{language: map[string]any{
		"title": title(h.w, m, 300), "content": content}}}}

	if secret := h.r.Settings.Secret; secret != "" {
		at := strconv.FormatInt(h.now().Unix(), 10)
		mac := hmac.New(sha256.New, []byte(at+"\n"+secret))
		body["timestamp"] = at
		body["sign"] = base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return body
}

// slack is the message of a Slack incoming webhook. The texts are plain, and what Slack reads as a mention or a link is
// escaped as it wants.
func (h *robot) slack(m *Message) any {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	head := title(h.w, m, 140)
	blocks := []any{map[string]any{"type": "header", "text": map[string]any{"type": "plain_text", "text": head, "emoji": false}}}
	text, size := "", 0
	for _, l := range lines(h.w, m, robotLines) {
		if size += len(l) + 1; size > slackText || m.Test {
			break
		}
		text += l + "\n"
	}
	if text != "" {
		blocks = append(blocks, map[string]any{"type": "section", "text": map[string]any{"type": "plain_text",
			"text": strings.TrimSpace(text), "emoji": false}})
	}
	return map[string]any{"text": escape.Replace(head), "blocks": blocks}
}
