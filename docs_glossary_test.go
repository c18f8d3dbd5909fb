package gozzard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/language"
)

// sameWord is a term for which the command line and the console once had different Chinese words.
type sameWord struct {
	english *regexp.Regexp // the English texts that have the term
	row     string         // of docs/zh/glossary.md
	word    string
	not     []string
}

var sameWords = []sameWord{
	{regexp.MustCompile(`(?i)\bkill`), "**强制结束**（kill）", "强制结束", []string{"强制停止", "强行"}},
	{regexp.MustCompile(`(?i)\brevok`), "**吊销**（revoke）", "吊销", []string{"撤销", "废除"}},
	{regexp.MustCompile(`(?i)second factor`), "**两步验证**（second factor）", "两步验证",
		[]string{"第二因素", "双因素", "二次验证"}},
	{regexp.MustCompile(`(?i)\bepoch\b|"keys.epoch"`), "**第 N 代**（epoch）", "第", []string{"序号", "epoch %d"}},
}

var wordOfConsole = regexp.MustCompile(`^\s*("[^"]+"): \{ en: "((?:[^"\\]|\\.)*)", zh: "((?:[^"\\]|\\.)*)"`)

// TestWordsOfGlossary: the command line and the console have the Chinese words of the glossary.
func TestWordsOfGlossary(t *testing.T) {
	glossary, err := os.ReadFile("docs/zh/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]map[string]string{"command line": chineseOfCommandLine(t), "console": chineseOfConsole(t)}
	for _, w := range sameWords {
		if !strings.Contains(string(glossary), "| "+w.row+" |") {
			t.Errorf("docs/zh/glossary.md has no row %s", w.row)
		}
		for door, all := range texts {
			uses := 0
			for english, chinese := range all {
				if !w.english.MatchString(english) {
					continue
				}
				if strings.Contains(chinese, w.word) {
					uses++
				}
				for _, no := range w.not {
					if strings.Contains(chinese, no) {
						t.Errorf("%s: %q is %q: the glossary has %s", door, english, chinese, w.row)
					}
				}
			}
			if uses == 0 {
				t.Errorf("%s: no text has %s", door, w.word)
			}
		}
	}
}

// chineseOfCommandLine is the Chinese of each English text of the command line.
func chineseOfCommandLine(t *testing.T) map[string]string {
	t.Helper()
	all, chinese := map[string]string{}, language.CommandLine()
	for _, s := range parseAll(t) {
		if s.isTest() {
			continue
		}
		for _, part := range textFolders {
			if s.folder == part.folder {
				for _, text := range messagesIn(s.file, part.calls) {
					if chinese.Has(text) {
						all[text] = chinese.Text(text)
					}
				}
			}
		}
	}
	return all
}

// chineseOfConsole is the Chinese of each key and English text of the console.
func chineseOfConsole(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("web/src/words/*.ts")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			if m := wordOfConsole.FindStringSubmatch(line); m != nil {
				all[m[1]+" "+m[2]] = m[3]
			}
		}
	}
	if len(all) < 500 {
		t.Errorf("only %d texts of the console were found", len(all))
	}
	return all
}

// formerWord is a word that once stood for a meaning for which docs/zh/glossary.md has another one.
type formerWord struct {
	word    *regexp.Regexp
	instead string   // in the glossary
	fine    []string // where the word means something else
	example string
}

var formerWords = []formerWord{
	{regexp.MustCompile(`服务器`), "**服务端**（server）", []string{"邮件服务器", "DNS 服务器", "不叫“服务器”"}, "另一台服务器"},
	{regexp.MustCompile(`收编`), "**接管**（adopt）", nil, "PID 文件指明的进程被收编"},
	{regexp.MustCompile(`次执行，失败|执行记录|有执行失败`), "**目标**（attempt）", nil, "共 3 次执行，失败 1 次"},
	{regexp.MustCompile(`共用(同一)?记录|服务端的记录[移到]|记录在 PostgreSQL`), "**数据库**（record）", nil, "与其他服务端共用记录"},
	{regexp.MustCompile(`强行|强杀|强制停止`), "**强制结束**（kill）", nil, "停止、强杀、取消托管"},
	{regexp.MustCompile(`日志文件里`), "**日志**（journal）", nil, "它们记在 Agent 的日志文件里"},
	{regexp.MustCompile(`你`), "“您”", nil, "列出你的订阅"},
	{regexp.MustCompile(`(^|[^-\w])agents? ?\p{Han}`), "Agent、PID", []string{"gozzard agent"}, "移入 agent 的 cgroup"},
	{regexp.MustCompile(`\bpid ?(\p{Han}|%)|进程号`), "Agent、PID", nil, "pid 文件 %s 为空"},
	{regexp.MustCompile(`\bunits? ?\p{Han}|\p{Han} units?\b`), "“单元”", nil, "再启动 unit"},
	{regexp.MustCompile(`安装包`), "“软件包”", nil, "安装包的 Agent"},
	{regexp.MustCompile(`更改`), "“修改”", nil, "更改接收方"},
	{regexp.MustCompile(`账户`), "- 账号、", nil, "账户 %s 的文件"},
	{regexp.MustCompile(`调用者`), "调用方", nil, "调用者需要该权限"},
	{regexp.MustCompile(`禁用`), "“停用”和“启用”", []string{"停止并禁用", "写作“禁用”"}, "已禁用应用 %s"},
	{regexp.MustCompile(`哈希|链条`), "*散列链*", nil, "哈希链是否完好"},
	{regexp.MustCompile(`添加主机`), "*接入主机*", nil, "[添加主机]"},
	{regexp.MustCompile(`应用代码|应用 ?ID`), "**应用编码**（app code）", []string{"蓝鲸开发者中心也称应用 ID"}, "code（应用代码）"},
	{regexp.MustCompile(`生效版本`), "“可用版本”", nil, "%s 的生效版本仍是 %d"},
	{regexp.MustCompile(`全部范围的? ?(admin|管理员)|全局的 admin`), "“全局 admin”", nil, "需要全部范围的 admin 角色"},
	{regexp.MustCompile(`(^|[^-\w.])secret ?[\p{Han}，、；。]|[\p{Han}，、；。] ?secret($|[^-\w.])`), "“应用密钥”", nil, "创建应用及其 secret"},
	{regexp.MustCompile(`本机链路`), "链路本地地址", nil, "其地址属于本机链路"},
	{regexp.MustCompile(`没有业务 ?(%d|[0-9])`), "“业务 9 不存在”", nil, "没有业务 %d"},
	{regexp.MustCompile(`作废`), "**吊销**（revoke）", nil, "作废旧密钥"},
	{regexp.MustCompile(`以 (%d|[0-9]+) 退出`), "“退出码为 1”", nil, "start_cmd 以 3 退出"},
}

func (w formerWord) in(text string) bool {
	for _, fine := range w.fine {
		text = strings.ReplaceAll(text, fine, "")
	}
	return w.word.MatchString(text)
}

// TestOneChineseWord: pages, command line and console have one Chinese word for one meaning, that of the glossary.
func TestOneChineseWord(t *testing.T) {
	glossary, err := os.ReadFile("docs/zh/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range formerWords {
		if !strings.Contains(string(glossary), w.instead) {
			t.Errorf("docs/zh/glossary.md has no %s", w.instead)
		}
		if !w.in(w.example) {
			t.Errorf("%s does not find %q", w.word, w.example)
		}
	}

	texts := 0
	check := func(place, text string) {
		texts++
		for _, w := range formerWords {
			if w.in(text) {
				t.Errorf("%s: %.200q: the glossary has %s, not %q", place, text, w.instead, w.word.FindString(text))
			}
		}
	}
	for page, text := range pages(t) {
		if strings.HasPrefix(page, "docs/zh/") || page == "README.zh.md" {
			for line := range strings.Lines(inCode.ReplaceAllString(text, "")) {
				check(page, line)
			}
		}
	}
	catalogues, _ := filepath.Glob("internal/language/zh/*.po")
	for _, name := range catalogues {
		for _, e := range readPO(t, name) {
			check(name, e.Chinese)
		}
	}
	for key, chinese := range chineseOfConsole(t) {
		check("console: "+key, chinese)
	}
	if texts < 5000 {
		t.Errorf("only %d texts were found", texts)
	}
}

// inCode are blocks, words in the form of code and the targets of links.
var inCode = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`|\\]\\([^)\n]*\\)")
