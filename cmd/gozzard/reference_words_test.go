package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gozzard/gozzard/internal/language"
)

// edition is the reference in one language.
type edition struct {
	folder string // of its pages, below docs
	root   *cobra.Command
	words  map[string]string // by the English words, or by a name for longer texts
}

// editions are the references in English and Chinese. The help of the commands comes from the program.
func editions() []*edition {
	return []*edition{{root: newRoot(), words: englishWords},
		{folder: "zh/", root: newRootIn(language.CommandLine()), words: chineseWords}}
}

func (e *edition) say(text string) string {
	if own, ok := e.words[text]; ok {
		return own
	}
	if e.folder != "" {
		panic("the reference in Chinese has no words for: " + text) // the test fails
	}
	return text
}

// title begins a page.
func (e *edition) title(b *bytes.Buffer, title, name string) {
	fmt.Fprintf(b, "# %s\n\n", e.say(title))
	if e.folder != "" {
		fmt.Fprintf(b, "[English](../%s)\n\n", name)
	}
	b.WriteString(generated)
}

var englishWords = map[string]string{
	"about commands": "Every command of the program, with its flags. `gozzard COMMAND --help` prints the same text.",
	"about completion": `Shell completion knows commands, flags, and the names of processes, hosts, businesses and so on that you may see. Packages and ` + "`make install`" + ` install it for bash, zsh and fish; bash
needs the package bash-completion. ` + "`source <(gozzard completion bash)`" + ` turns it on without that. Manual pages are installed, too: ` + "`man gozzard`, `man gozzard-ps`" + `.`,
	"about settings": `Every setting of ` + "`gozzard server`, `gozzard agent`, `gozzard relay`, `gozzard dev` and `gozzard sim`" + `.
A setting can be given in three places:

1. as a flag: ` + "`--agent-listen 127.0.0.1:4230`" + `
2. in the environment: ` + "`GOZZARD_AGENT_LISTEN=127.0.0.1:4230`" + `
3. in the YAML file of ` + "`--config FILE` or `GOZZARD_CONFIG`: `agent-listen: 127.0.0.1:4230`" + `

A flag wins over the environment. The environment wins over the file.
A key of the file that is not a setting is an error.
A setting that can be repeated is a YAML list in the file.

The settings of the policy of a host are in [people-and-rights.md](people-and-rights.md#the-policy-of-a-host).
The limits are explained in [limits-and-quotas.md](limits-and-quotas.md).`,
}

var chineseWords = map[string]string{
	"Command reference":       "命令参考",
	"Configuration reference": "配置参考",
	"about commands":          "程序的全部命令及参数。`gozzard 命令 --help` 输出相同的内容。",
	"about completion": "Shell 补全可以补全命令、参数，以及您有权看到的进程、主机、业务等名称。软件包和 `make install` 会为 bash、zsh 和 fish 安装补全，其中 bash 需要 bash-completion 软件包。" +
		"不安装时，可用 `source <(gozzard completion bash)` 启用。手册页也会一并安装：`man gozzard`、`man gozzard-ps`。",
	"about settings": `` + "`gozzard server`、`gozzard agent`、`gozzard relay`、`gozzard dev` 和 `gozzard sim`" + ` 的全部设置。每项设置可以在三个地方给出：

1. 命令行参数：` + "`--agent-listen 127.0.0.1:4230`" + `
2. 环境变量：` + "`GOZZARD_AGENT_LISTEN=127.0.0.1:4230`" + `
3. ` + "`--config FILE` 或 `GOZZARD_CONFIG` 指定的 YAML 文件：`agent-listen: 127.0.0.1:4230`" + `

命令行参数优先于环境变量，环境变量优先于文件。文件中出现不存在的设置会报错。可以重复给出的设置，在文件中写成 YAML 列表。

主机策略的设置见[用户与权限](people-and-rights.md#主机策略)。各项限制的说明见[限制与配额](limits-and-quotas.md)。`,

	"Exit codes":                      "退出码",
	"code | meaning":                  "退出码 | 含义",
	"flag | type | default | meaning": "参数 | 类型 | 默认值 | 含义",
	"flag and key | environment | type | default | meaning": "参数和键 | 环境变量 | 类型 | 默认值 | 含义",
	"Flags of every command that calls a server":            "访问服务端的命令共有的参数",
	"The reference below does not repeat these two flags.":  "下文不再重复这两个参数。",
	"The command succeeded.":                                "命令成功。",
	"The command failed.":                                   "命令失败。",
	"A flag, an argument or a document is wrong.":           "参数或文档有误。",
	"A process or an agent is not running.":                 "进程或 Agent 没有运行。",
	"The caller is not allowed to do this.":                 "调用方没有权限。",
	"Nothing matched.":                                      "没有匹配的对象。",
	"The command failed on some hosts.":                     "在部分主机上失败。",
	"The command did not finish within `--timeout`, or a host went offline before it answered. The task continues.": "在 `--timeout` 时间内没有完成，或主机在返回结果前离线。任务继续执行。",
	"A disk failed while a server or an agent wrote to it; the program ended.":                                      "服务端或 Agent 写磁盘时出错，程序退出。",
	"Ctrl-C ended the wait. The task continues.":                                                                    "按 Ctrl-C 结束了等待。任务继续执行。",

	".":         "。",
	"Examples:": "示例：",
	"switch":    "开关",
	"string":    "字符串",
	"int":       "整数",
	"float":     "小数",
	"duration":  "时长",
	"strings":   "字符串列表",
}
