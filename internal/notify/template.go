package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gozzard/gozzard/internal/record"
)

// The languages of messages.
const (
	english = "en"
	chinese = "zh"
)

// words are the texts of messages in one language. Chinese ones are here and not in package language, because they are
// chosen by the receiver, not by the caller.
type words struct {
	kinds     map[string]string
	firing    string // the state in a title
	resolved  string
	repeated  string
	left      string // %d: alerts that are only counted
	since     string // %s: time
	until     string // %s, %s: time, duration
	host      string
	process   string
	namespace string // of several processes
	file      string
	task      string
	test      string
	counted   string // a state and how many alerts have it
	colon     string
	comma     string
	part      string              // between the parts of a line
	opening   string              // before a mark, such as the state of an alert
	closing   string              // after it
	opened    string              // before what stands in parentheses
	closed    string              // after it
	said      func(string) string // what an agent or the server wrote, in this language
}

// wordsOf are the texts in the language of a receiver.
func (e *Engine) wordsOf(language string) *words {
	w := wordsIn(language)
	if language == chinese {
		w.said = func(text string) string { return e.verdicts().Joined(text) }
	}
	return w
}

func wordsIn(language string) *words {
	if language == chinese {
		return &words{counted: "%[2]d 条%[1]s", colon: "：", comma: "，", part: "；", opening: "【", closing: "】", opened: "（", closed: "）",
			firing: "告警", resolved: "已恢复", repeated: "仍未恢复", left: "另有 %d 条未列出", since: "开始于 %s",
			until: "结束于 %s，持续 %s", host: "主机", process: "进程", namespace: "命名空间", file: "文件", task: "任务", test: "这是一条测试消息：该接收方工作正常",
			kinds: map[string]string{kindTest: "测试", kindCrashLoop: "反复崩溃", kindHostLost: "主机失联", kindLimit: "超出资源限制", kindTaskFailed: "任务失败",
				kindHealth: "健康检查失败", kindStartFailed: "启动失败", kindRunFailed: "运行失败", kindEnded: "进程退出", kindRestartFailed: "拉起失败",
				kindGaveUp: "已放弃拉起", kindOrphaned: "主进程退出，其余进程仍在运行", kindPolicy: "主机策略变更", kindForeign: "上报了不属于本机的地址",
				kindLeftOut: "部分拓扑未采用"}}
	}
	return &words{counted: "%s %d", colon: ": ", comma: ", ", part: "; ", opening: "[", closing: "] ", opened: " (", closed: ")",
		said:   func(text string) string { return text },
		firing: "firing", resolved: "resolved", repeated: "still firing", left: "%d more are not listed", since: "since %s",
		until: "until %s, for %s", host: "host", process: "process", namespace: "namespace", file: "file", task: "task",
		test: "This is a test message: the receiver works",
		kinds: map[string]string{kindTest: "test", kindCrashLoop: "crash loop", kindHostLost: "host lost", kindLimit: "limit exceeded",
			kindTaskFailed: "task failed", kindHealth: "health check failing", kindStartFailed: "start failed", kindRunFailed: "run failed",
			kindEnded: "process ended", kindRestartFailed: "restart failed", kindGaveUp: "restarts given up",
			kindOrphaned: "main process ended, others still run", kindPolicy: "policy of the host changed",
			kindForeign: "addresses of others reported", kindLeftOut: "part of the topology not taken over"}}
}

// annotationsOf are the texts of an alert.
func annotationsOf(w *words, a *record.Alert) map[string]string {
	if a.Kind == kindTest {
		return map[string]string{"summary": w.test}
	}
	out := map[string]string{"summary": clean(w.kinds[a.Kind]+w.colon+subject(w, a), maxText)}
	if a.Message != "" {
		out["description"] = clean(w.said(a.Message), maxText)
	}
	return out
}

// subject is what an alert is about.
func subject(w *words, a *record.Alert) string {
	var parts []string
	if path, ok := strings.CutPrefix(a.Key.Name, "file:"); ok { // gozzard.FileKey
		parts = append(parts, w.file+" "+clean(path, maxText)+w.inParentheses(clean(a.Key.Namespace, maxText)))
	} else if a.Key.Name == "" && a.Key.Namespace != "" { // of several processes
		parts = append(parts, w.namespace+" "+clean(a.Key.Namespace, maxText))
	} else if a.Key.Name != "" {
		parts = append(parts, w.process+" "+clean(a.Key.Namespace+"."+a.Key.Name, maxText))
	}
	if a.Agent != "" {
		parts = append(parts, w.host+" "+hostText(w, a))
	}
	if a.Task != "" {
		parts = append(parts, w.task+" "+clean(a.Task, 64))
	}
	return strings.Join(parts, w.comma)
}

func hostText(w *words, a *record.Alert) string {
	name := string(a.Agent)
	if a.Addr.IP.IsValid() {
		name = a.Addr.String()
	}
	if a.Hostname != "" {
		name += w.inParentheses(a.Hostname)
	}
	return clean(name, maxText)
}

// mark is a word at the beginning of a line: of ours, never from outside.
func (w *words) mark(word string) string { return w.opening + word + w.closing }

func (w *words) inParentheses(text string) string { return w.opened + text + w.closed }

// title is a message in one line.
func title(w *words, m *Message, max int) string {
	if m.Test {
		return cut(w.mark("Gozzard")+w.test, max)
	}

	// How many alerts of which state.
	state := w.firing
	switch {
	case m.Firing == 0:
		state = w.resolved
	case m.Repeated:
		state = w.repeated
	}

	// Which kinds, and where.
	var kinds []string
	for i := range m.Alerts {
		if k := w.kinds[m.Alerts[i].Kind]; !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	text := w.mark("Gozzard") + fmt.Sprintf(w.counted, state, max1(m.Firing, m.Resolved)) + w.colon + strings.Join(kinds, w.comma)
	if len(m.Alerts) == 1 {
		text += w.colon + subject(w, &m.Alerts[0])
	} else if ns := m.Group["namespace"]; ns != "" {
		text += w.colon + ns
	}
	return clean(text, max)
}

func max1(firing, resolved int) int {
	if firing > 0 {
		return firing
	}
	return resolved
}

// lines are the alerts of a message, one line each, already cleaned. The last one says how many are left out.
func lines(w *words, m *Message, max int) (list []string) {
	for i := range m.Alerts {
		if i == max {
			break
		}
		a := &m.Alerts[i]
		state, when := w.firing, fmt.Sprintf(w.since, moment(a.Starts))
		if !a.Firing() {
			state = w.resolved
			when = fmt.Sprintf(w.until, moment(a.Ends), a.Ends.Sub(a.Starts).Round(time.Second))
		}
		text := fmt.Sprintf("%s%s%s%s%s%s", w.mark(state), w.kinds[a.Kind], w.colon, subject(w, a), w.part, when)
		if a.Message != "" {
			text += w.part + w.said(a.Message)
		}
		list = append(list, clean(text, maxText))
	}
	if left := m.Total() - len(list); left > 0 && !m.Test {
		list = append(list, fmt.Sprintf(w.left, left))
	}
	return list
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
