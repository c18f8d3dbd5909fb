package language_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozzard/gozzard/internal/language"
)

// Verdicts, events and statuses are put together by agents. Every part comes out in Chinese, and what a program printed
// stays as it is.
func TestJoined(t *testing.T) {
	c := language.Verdicts()
	for text, want := range map[string]string{
		"": "",
		"already running: nginx; it is supervised from now on":                "已在运行：nginx；从此被托管",
		"not running: web; the process exited with 3; last output: no config": "未运行：web；进程退出码为 3；最后的输出：no config",
		"the process exited with 3; last output: no licence":                  "进程退出码为 3；最后的输出：no licence",
		"the definition has no reload command: give it reload (reload_cmd)":   "定义中没有 reload 命令：请写上 reload（reload_cmd）",
		"not running: web; the process was ended by SIGKILL; its pid file names pid 7, which has ended": "未运行：web；" +
			"进程被 SIGKILL 终止；PID 文件中是 PID 7，它已结束",
		"still running: web; pid 7; last output: a; b":                      "仍在运行：web；PID 为 7；最后的输出：a; b",
		"stop_cmd did not end within 5 s and was killed; last output: wait": "stop_cmd 未在 5 s 内结束，已被强制终止；最后的输出：wait",
		`start_cmd did not end within 5 s and was killed; pid 7 runs as "python3", but the definition says proc_name "myapp": ` +
			"correct proc_name if this is the process; last output: wait": "start_cmd 未在 5 s 内结束，已被强制终止；" +
			`PID 7 运行的程序是 "python3"，而定义中的 proc_name 是 "myapp"：如果它就是该进程，请更正 proc_name；最后的输出：wait`,
		"start_cmd did not end within 5 s and was killed; pid 7 is not the process: it runs as user www, definition says user " +
			"app": "start_cmd 未在 5 s 内结束，已被强制终止；PID 7 不是该进程：以用户 www 运行，定义中的用户是 app",
		"start_cmd was ended by SIGSEGV":                        "start_cmd 被 SIGSEGV 终止",
		"start_cmd was ended by SIGSEGV; last output: x":        "start_cmd 被 SIGSEGV 终止；最后的输出：x",
		"start_cmd exited with 7 and printed nothing":           "start_cmd 的退出码为 7，没有输出",
		"crash loop: 3 exits, next start in 5 s: exited with 1": "反复崩溃：3 次退出或启动失败，5 s 后再次拉起：退出码为 1",
		"crash loop: 3 exits, next start in 5 s: exited with 1; last output: Address already in use": "反复崩溃：3 次退出或启动失败，" +
			"5 s 后再次拉起：退出码为 1；最后的输出：Address already in use",
		"health_cmd exited with 2: cannot connect": "health_cmd 的退出码为 2：cannot connect",
		"cpu 12.5 % is over its limit of 10 % in 3 samples in a row; restarted": "cpu 12.5 % 连续 3 次采样超过限制 10 %；" +
			"重启",
		"permission: account root is not allowed by local policy (allow_root in /p.yaml); account www with uid 33 is not allowed " +
			"by local policy (deny_uids in /p.yaml): it is not absolute; choose another account: user in the definition, or --user NAME " +
			"of gozzard run; otherwise, to allow it, the owner of the host writes into this " +
			"file: allow_root: true and users: [\"a\"]": "无权限：本机策略不允许账号 root（/p.yaml 中的 allow_root）；" +
			"本机策略不允许账号 www（uid 33）（/p.yaml 中的 deny_uids）：它不是绝对路径；" +
			"请改用其他账号：定义中的 user，或 gozzard run 的 --user NAME；否则，如需允许，请主机的管理员在该文件中写入：allow_root: true 和 users: [\"a\"]",
		"permission: account www with uid 33 is not allowed by local policy (deny_uids in /p.yaml); folder / (the default if none is " +
			"given) is not allowed by local policy (path_prefixes in /p.yaml); choose another account: user in the definition, or " +
			"--user NAME of gozzard run; choose a folder below /opt, /srv: folder in the definition, or --dir FOLDER of gozzard run; otherwise, to allow it, the owner " +
			"of the host runs: gozzard agent policy --policy /p.yaml --allow-user www": "无权限：本机策略不允许账号 www（uid 33）" +
			"（/p.yaml 中的 deny_uids）；本机策略不允许目录 /（未指定时的默认值）（/p.yaml 中的 path_prefixes）；" +
			"请改用其他账号：定义中的 user，或 gozzard run 的 --user NAME；请在定义的 folder 或 gozzard run 的 --dir FOLDER 中改用以下目录之内的目录：/opt, /srv；" +
			"否则，如需允许，请主机的管理员运行：gozzard agent policy --policy /p.yaml --allow-user www",
		"cannot run start_cmd: cannot run as nobody2: no such user on this host": "无法执行 start_cmd：无法以 nobody2 的身份运行：" +
			"本机没有该用户",
		"not permitted: app half may not stop processes of demo here": "无权限：应用 half 无权在此主机上对 demo 的进程执行 stop",
		"cannot restart redis, which was not running: no such config": "无法拉起 redis（此前未运行）：no such config",
		"unhealthy: health: Get \"http://127.0.0.1:9999/\": dial tcp 127.0.0.1:9999: connect: connection refused": "不健康：健康检查：" +
			"请求 \"http://127.0.0.1:9999/\"：连接 127.0.0.1:9999：连接被拒绝",
		"unhealthy: health: dial tcp [::1]:80: connect: no route to host":           "不健康：健康检查：连接 [::1]:80：没有到该主机的路由",
		"unhealthy: health: Get \"http://127.0.0.1:1/\": context deadline exceeded": "不健康：健康检查：请求 \"http://127.0.0.1:1/\"：已超时",
		"restart: 2 of 3 attempts failed: 1 on an unreachable host; 1 with a failed command": "restart：共 3 个目标，失败 2 个：1 个的主机不可达；" +
			"1 个的命令执行失败",
		"permission: file /etc/a.conf is not allowed by local policy (files in /p.yaml)": "无权限：本机策略不允许文件 /etc/a.conf（/p.yaml 中的 files）",
		"pid_file of process 46 cannot be rendered: line 1: ${x}: Undefined: there is no variable x": "进程 46 的 pid_file 渲染失败：第 1 行：" +
			"${x}：Undefined：没有变量 x",
		"start: 1 of 3 attempts failed": "start：共 3 个目标，失败 1 个",
		// What programs print.
		"cannot start, pid 7":                "cannot start, pid 7",
		"error: config; line 3: bad; giving": "error: config; line 3: bad; giving",
	} {
		if got := c.Joined(text); got != want {
			t.Errorf("%q\n is %q\nwant %q", text, got, want)
		}
	}

	var none *language.Catalogue
	if got := none.Joined("not running: web"); got != "not running: web" {
		t.Errorf("no catalogue: %q", got)
	}
}

// The output of a program in a verdict costs a bounded amount of work.
func TestJoinedIsBounded(t *testing.T) {
	c := language.Verdicts()
	began := time.Now()
	for _, text := range []string{
		strings.Repeat("; ", 8000), strings.Repeat(": ", 8000), strings.Repeat("a; b: ", 2000),
		strings.Repeat("permission: ", 1300), strings.Repeat("not running: x; ", 1000), strings.Repeat("x", 1<<20),
	} {
		if got := c.Joined(text); len(got) > 4*len(text) {
			t.Errorf("%.40q grows from %d to %d bytes", text, len(text), len(got))
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
