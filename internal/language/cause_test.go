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
		"pid_file of process 46 cannot be rendered: line 1: /run/${x}.pid: Undefined: there is no variable x": "进程 46 的 pid_file 渲染失败：" +
			"第 1 行：/run/${x}.pid：Undefined：没有变量 x",
		"the template cannot be rendered: line 1: listen ${1/0};: division by zero": "模板渲染失败：第 1 行：listen ${1/0};：除数为零",
		"cannot use alice.txt: it is not a file of secret keys such as gozzard backup keygen writes": "无法使用 alice.txt：不是私钥文件：" +
			"请使用 gozzard backup keygen 写入的文件",
		"the backup t.age cannot be used: it is damaged or truncated: failed to decrypt and authenticate payload chunk": "备份 t.age 不可用：" +
			"备份已损坏或不完整：解密失败",
		"invalid argument \"abc\" for \"--lines\" flag: strconv.ParseInt: parsing \"abc\": invalid syntax": "参数 \"--lines\" 的值 \"abc\" 无效：" +
			"\"abc\" 不是整数",
		"cannot read the credentials in a.yaml: invalid character 'b' looking for beginning of value": "无法读取 a.yaml 中的凭证：不是 JSON：此处不应为 'b'",
		"no answer from https://10.0.0.1:4230: tls: failed to verify certificate: x509: cannot validate certificate for 10.0.0.1 because it " +
			"doesn't contain any IP SANs": "https://10.0.0.1:4230 没有应答：证书校验失败：证书中没有 IP 地址（IP SAN），不能用于 10.0.0.1",
		"supervisorctl names no running program: exit status 3: web STOPPED\nno process runs that could be adopted": "supervisorctl 没有列出运行中的程序：" +
			"退出码 3：web STOPPED\n没有可以接管的运行中的进程",
		"there is no role \"x\" (viewer or admin)":         "there is no role \"x\" (viewer or admin)", // not "there is no %s %q"
		"remote error: tls: certificate required":          "对方拒绝了 TLS 连接：需要主机的证书",
		"openat a.tpl: no such file or directory":          "打开 a.tpl：文件或目录不存在",
		"there is no token \"a\"":                          "没有个人令牌 \"a\"",
		"[2:1] mapping key \"a\" already defined at [1:1]": "第 2 行第 1 列：键 \"a\" 重复，第一次出现在第 1 行第 1 列",
	} {
		if got := chinese.Message(text); got != want {
			t.Errorf("%q:\n  got  %q\n  want %q", text, got, want)
		}
	}

	const address = "127.0.0.1 is an address of this machine, of its link or of its cloud: the server's flag --notify-allow decides " +
		"which of these receivers may use"
	if got, want := chinese.Message("the address of the receiver is not allowed: "+address), "不允许使用接收方的地址：127.0.0.1 是本机地址、链路本地地址"+
		"或所在云平台的地址：接收方可以使用其中哪些，由服务端参数 --notify-allow 决定"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
