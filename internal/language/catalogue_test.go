package language_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/language"
)

// Finished messages are found by their patterns, whatever a caller wrote into their arguments.
func TestMessage(t *testing.T) {
	c := language.Messages()
	for text, want := range map[string]string{
		"required":                       "必填",
		"no such task":                   "任务不存在",
		"":                               "",
		"something that no text is like": "something that no text is like",
		"must be a whole number, is the string \"x\"": "必须是整数，实际为字符串 \"x\"",
		"must be an object, is a list":                "必须是对象，实际为列表",
		"has 300 bytes, at most 255 are allowed":      "共 300 字节，最多允许 255 字节",
		"has many bytes, at most 255 are allowed":     "has many bytes, at most 255 are allowed",
		`"a, is b" is not a clean absolute path`:      `"a, is b" 不是规范的绝对路径`,
		"body is not strict JSON: line 1, column 2: '}' where a value is expected": "请求体不是严格的 JSON：第 1 行第 2 列：" +
			"此处应为值，实际为 '}'",
		"asks for op_type 1 of a:b on 0:10.0.0.1, an earlier item for op_type 0": "对 a:b（0:10.0.0.1）请求了 op_type 1，" +
			"而前面的条目请求的是 op_type 0",
		"app web asks more than 5 times a second: try again in 3s":       "应用 web 每秒请求超过 5 次：请在 3s 后重试",
		"not executed: a newer operation on the same process came first": "未执行：同一进程上已有更新的操作",
		"must be a whole number, is 1.5":                                 "必须是整数，实际为1.5",
		"must be %s%d%!s(MISSING), is the number %s":                     "必须是%s%d%!s(MISSING)，实际为数字 %s",
	} {
		if got := c.Message(text); got != want {
			t.Errorf("%q\n is %q\nwant %q", text, got, want)
		}
	}

	if got := c.Textf("must be %s, is %s", "a list", "true or false"); got != "必须是列表，实际为true 或 false" {
		t.Errorf("arguments of Textf: %q", got)
	}
	if got := c.Textf("%[2]s %[1]d", 1, "x"); got != "x 1" {
		t.Errorf("a text that is not there: %q", got)
	}

	var none *language.Catalogue
	if got := none.Message("required") + none.Text("required") + none.Textf("%d", 1); got != "requiredrequired1" {
		t.Errorf("no catalogue: %q", got)
	}
}

// The cause of an error comes out in Chinese, too, in every layer: a program wraps errors, joins them and puts a place
// before them.
func TestCauses(t *testing.T) {
	c := language.CommandLine()
	for text, want := range map[string]string{
		"permission denied": "权限不足",
		"cannot read /etc/x.pem: open /etc/x.pem: permission denied":          "无法读取 /etc/x.pem：打开 /etc/x.pem：权限不足",
		"dial tcp 127.0.0.1:1: connect: connection refused":                   "连接 127.0.0.1:1：连接被拒绝",
		"/etc/x.pem: is a directory":                                          "/etc/x.pem: 是目录",
		"/etc/x.pem: what nothing translates":                                 "/etc/x.pem: what nothing translates",
		"open /a: permission denied\nfrom elsewhere\nopen /b: is a directory": "打开 /a：权限不足\nfrom elsewhere\n打开 /b：是目录",
		"hosts[3].ip: required; hosts[4].cloud: must be a list, is true":      "hosts[3].ip：必填；hosts[4].cloud: 必须是列表，实际为true",
		"policy /etc/p.yaml: line 1: users must be a list, is a text; [] is an empty list\nline 2: shell must be true or false": "策略 " +
			"/etc/p.yaml：第 1 行：users 必须是列表，实际为文本；[] 表示空列表\n第 2 行：shell 必须是 true 或 false",
		"policy /etc/p.yaml: line 1: a list in brackets begins here and is not closed": "策略 /etc/p.yaml：第 1 行：括号中的列表从此处开始，" +
			"但没有结束",
		"cannot leave the fleet of a:1: dial tcp a:1: connect: connection refused. Nothing was changed. If the server is gone, run " +
			"this again with --offline": "无法退出 a:1 的机群：连接 a:1：连接被拒绝。没有做任何改动。如果服务端已不存在，请加上 --offline 再次执行",
		"commands of the agent's account can change this policy, because it is in the state folder; as root, run: install -D -m 0644 " +
			"/a/p.yaml /etc/gozzard/policy.yaml && rm /a/p.yaml && mv /a/release.pub /etc/gozzard; then start the agent with --policy " +
			"/etc/gozzard/policy.yaml": "策略位于状态目录中，Agent 账号的命令可以修改它；请以 root 执行：install -D -m 0644 /a/p.yaml " +
			"/etc/gozzard/policy.yaml && rm /a/p.yaml && mv /a/release.pub /etc/gozzard；然后以 --policy /etc/gozzard/policy.yaml 启动 Agent",
		"the limit is 100 (hard limit 200), 65536 is recommended: each process needs one": "上限为 100（硬上限 200），建议为 " +
			"65536：每个进程占用一个",
	} {
		if got := c.Message(text); got != want {
			t.Errorf("%q\n is %q\nwant %q", text, got, want)
		}
	}
}

// Long and nested messages cost a bounded amount of work.
func TestMessageIsBounded(t *testing.T) {
	c := language.CommandLine()
	began := time.Now()
	for _, text := range []string{
		strings.Repeat("must be ", 1<<20),
		strings.Repeat("x: try again in ", 1000),
		"must be " + strings.Repeat(", is the number ", 900),
		strings.Repeat(`"\"`, 5000) + " is not a clean absolute path",
		strings.Repeat("not executed: ", 1000),
		strings.Repeat("open a: ", 2000),
		strings.Repeat("is a directory; ", 1000),
		strings.Repeat("x: is a directory\n", 900),
	} {
		if got := c.Message(text); len(got) > 4*len(text) {
			t.Errorf("%.40q grows from %d to %d bytes", text, len(text), len(got))
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestReadPO(t *testing.T) {
	list, err := language.ReadPO("# a comment\n\nmsgid \"one\"\nmsgstr \"一\"\n\nmsgid \"\"\n\"two \\\"quoted\\\"\\n\"\n\"lines\"\nmsgstr \"\"\n\"二\\n\"\n\"行\"\n")
	if err != nil || len(list) != 2 || list[0].English != "one" || list[0].Chinese != "一" ||
		list[1].English != "two \"quoted\"\nlines" || list[1].Chinese != "二\n行" || list[1].Line != 6 {
		t.Errorf("%v %+v", err, list)
	}
	for _, bad := range []string{"msgstr \"x\"", "msgid x", "\"x\"", "msgid \"x", "msgid `x`", "what"} {
		if list, err := language.ReadPO(bad); err == nil {
			t.Errorf("%q is read as %v", bad, list)
		}
	}
}

func TestSameVerbs(t *testing.T) {
	for _, tt := range []struct {
		english, chinese string
		same             bool
	}{
		{"a %s b %d", "%d%[1]s", false}, {"a %s b %d", "%[2]d乙 %[1]s", true}, {"%s of %d", "%d 的 %s", false},
		{"100%% of %s", "%t 的 100%%", true}, {"%v", "%s", true}, {"x", "甲", true}, {"%s", "甲", false},
		{"%+.40q", "%q", true}, {"%q", "%s", false}, {"%[1]s and %[1]s", "%s", true},
	} {
		if got := language.SameVerbs(tt.english, tt.chinese); got != tt.same {
			t.Errorf("%q and %q: %v", tt.english, tt.chinese, got)
		}
	}
}

// A message with very many lines is the output of a program. It is not looked up line by line: a door translates
// thousands of messages in one answer.
func TestManyLinesAreNotLookedUp(t *testing.T) {
	c := language.Messages()
	few := strings.Repeat("required\n", 3) + "required"
	if got := c.Message(few); got != strings.Repeat("必填\n", 3)+"必填" {
		t.Errorf("a few lines: %q", got)
	}

	many := strings.Repeat("required\n", 100)
	if got := c.Message(many); got != many {
		t.Errorf("many lines were looked up: %.60q", got)
	}
}
