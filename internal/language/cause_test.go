package language_test

import (
	"testing"

	"github.com/gozzard/gozzard/internal/language"
)

// TestCausesOfLibraries: what libraries and the system say as the cause of an error has Chinese texts to its end.
func TestCausesOfLibraries(t *testing.T) {
	chinese := language.CommandLine()
	for text, want := range map[string]string{
		"cannot serve the API: listen tcp 0.0.0.0:8081: bind: address already in use":                          "无法提供 API：监听 0.0.0.0:8081：绑定地址：地址已被占用",
		"dial tcp: lookup a.example on 10.255.0.1:53: no such host":                                            "通过 10.255.0.1:53 解析 a.example：主机名不存在",
		"dial tcp: lookup a.example on 10.0.0.1:53: read udp 10.0.0.2:9->10.0.0.1:53: i/o timeout":             "通过 10.0.0.1:53 解析 a.example：等待 10.0.0.2:9->10.0.0.1:53 的应答：超时",
		"cannot send the mail: dial failed: mail beyond this machine needs STARTTLS or TLS":                    "无法发送邮件：连接失败：发往本机以外的邮件需要 STARTTLS 或 TLS",
		"invalid argument \"5\" for \"--timeout\" flag: time: missing unit in duration \"5\"":                  "参数 \"--timeout\" 的值 \"5\" 无效：时长 \"5\" 没有单位：请写成例如 30s、10m、24h",
		"host 0:10.0.0.1: there is no file /srv/a on this host":                                                "主机 0:10.0.0.1：该主机上没有文件 /srv/a",
		"[2:1] found character '\t' that cannot start any token\n   1 | name: x\n>  2 | \tcommand: y\n      ^": "第 2 行第 1 列：不能用制表符（Tab）缩进，请改用空格\n   1 | name: x\n>  2 | \tcommand: y\n      ^",
		"[2:1] mapping key \"a\" already defined at [1:1]":                                                     "第 2 行第 1 列：键 \"a\" 重复，第一次出现在第 1 行第 1 列",
	} {
		if got := chinese.Message(text); got != want {
			t.Errorf("%q:\n  got  %q\n  want %q", text, got, want)
		}
	}

	const address = "127.0.0.1 is an address of this machine, of its link or of its cloud: the server's flag --notify-allow decides " +
		"which of these receivers may use"
	if got, want := chinese.Message("the address of the receiver is not allowed: "+address), "不允许使用接收方的地址：127.0.0.1 是本机、本机链路"+
		"或所在云平台的地址：接收方可以使用其中哪些，由服务端参数 --notify-allow 决定"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
