#!/bin/sh
# Adds this host to the fleet of {{.Server}}: installs the program of the server, joins, and starts the agent.
#
#   curl -fsSL --cacert ca.pem {{.Server}}/join | sudo sh
#
# Settings in the environment:
#   GOZZARD_TOKEN_FILE  file with the token of "gozzard token create"
#   GOZZARD_TOKEN       the token itself. Without both, the script asks for it
#   GOZZARD_JOIN_FLAGS  more flags of "gozzard agent join", such as: --allow-user www-data --allow-path /var/www
set -eu

# All of the script is in functions: half a download does nothing.

# locale: sets the language of the program and of this script, from the shell that runs it: Chinese or English.
locale() {
	language=${LC_ALL:-${LC_MESSAGES:-${LANG:-C}}}
	case $language in
	C | C.* | POSIX*) ;;
	*) language=${LANGUAGE:-$language} ;;
	esac
	case $language in
	zh | zh[-_.@:]*) language=zh_CN.UTF-8 ;;
	*) language=C ;;
	esac
}

# text ENGLISH CHINESE
text() {
	if [ "$language" = C ]; then
		printf 'gozzard join: %s\n' "$1"
	else
		printf 'gozzard join：%s\n' "$2"
	fi
}

# fail ENGLISH CHINESE
fail() {
	text "$@" >&2
	exit 1
}

# fetch URL FILE
fetch() {
	if command -v curl >/dev/null; then
		if [ -s "$work/ca.pem" ]; then
			curl -fsSL --retry 5 --retry-delay 2 --cacert "$work/ca.pem" -o "$2" "$1"
		else
			curl -fsSL --retry 5 --retry-delay 2 -o "$2" "$1"
		fi
	elif command -v wget >/dev/null; then
		if [ -s "$work/ca.pem" ]; then
			wget -q --ca-certificate="$work/ca.pem" -O "$2" "$1"
		else
			wget -q -O "$2" "$1"
		fi
	else
		fail "neither curl nor wget is installed: install one of them" "没有安装 curl 或 wget：请安装其中一个"
	fi
}

# digest FILE: its SHA-256 in hexadecimal.
digest() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1" | cut -d' ' -f1
	elif command -v openssl >/dev/null; then
		openssl dgst -sha256 -r "$1" | cut -d' ' -f1
	else
		fail "neither sha256sum nor openssl is installed: install one of them" "没有安装 sha256sum 或 openssl：请安装其中一个"
	fi
}

# token FILE: writes the token into a file that only root can read.
token() {
	if [ -n "${GOZZARD_TOKEN_FILE:-}" ]; then
		cat "$GOZZARD_TOKEN_FILE" >"$1" 2>/dev/null ||
			fail "cannot read the token in $GOZZARD_TOKEN_FILE" "无法读取 $GOZZARD_TOKEN_FILE 中的令牌"
	elif [ -n "${GOZZARD_TOKEN:-}" ]; then
		printf '%s\n' "$GOZZARD_TOKEN" >"$1"
	elif (: </dev/tty) 2>/dev/null; then
		case $language in
		C) printf 'Token of "gozzard token create": ' >/dev/tty ;;
		*) printf '请输入 “gozzard token create” 给出的令牌：' >/dev/tty ;;
		esac
		stty -echo </dev/tty
		read -r answer </dev/tty || true
		stty echo </dev/tty
		echo >/dev/tty
		printf '%s\n' "${answer:-}" >"$1"
	else
		fail "there is no token: set GOZZARD_TOKEN_FILE or GOZZARD_TOKEN" "没有令牌：请设置 GOZZARD_TOKEN_FILE 或 GOZZARD_TOKEN"
	fi
	[ -s "$1" ] && grep -q . "$1" || fail "the token is empty" "令牌为空"
}

# program: installs the program of the server, unless this host has one.
program() {
	if [ -x /usr/bin/gozzard ] && /usr/bin/gozzard version >/dev/null 2>&1; then
		installed=$(/usr/bin/gozzard version | head -n 1)
		text "using the installed program: $installed" "使用已安装的程序：$installed"
		return 0
	fi
	case $(uname -s)-$(uname -m) in
	Linux-x86_64) platform=linux-amd64 ;;
	Linux-aarch64) platform=linux-arm64 ;;
	*) platform=other ;;
	esac
	[ "$platform" = '{{.Platform}}' ] ||
		fail "the server has the program for {{.Platform}} only, and this host is $(uname -s) $(uname -m): install the package of Gozzard, then run this again" \
			"服务端只有 {{.Platform}} 平台的程序，而本机是 $(uname -s) $(uname -m)：请先安装 Gozzard 的软件包，再重新运行本脚本"
	fetch '{{.Server}}/api/v1/enrol/program/gozzard-{{.Platform}}' "$work/gozzard" ||
		fail "cannot download the program from {{.Server}}" "无法从 {{.Server}} 下载程序"
	[ "$(digest "$work/gozzard")" = '{{.Sum}}' ] ||
		fail "the program does not match its checksum: nothing was installed" "程序与校验和不符：没有安装任何内容"
	install -m 0755 "$work/gozzard" /usr/bin/gozzard.new
	mv /usr/bin/gozzard.new /usr/bin/gozzard
	text "installed version {{.Version}} as /usr/bin/gozzard" "已安装版本 {{.Version}}：/usr/bin/gozzard"
}

# unit: installs the unit and the settings of the agent, unless they are there.
unit() {
	install -d -m 0755 /etc/gozzard
	[ -e /etc/gozzard/agent.yaml ] || cat >/etc/gozzard/agent.yaml <<'GOZZARD-END'
{{.Settings}}
GOZZARD-END
	[ -e /usr/lib/systemd/system/gozzard-agent.service ] || [ -e /etc/systemd/system/gozzard-agent.service ] ||
		{ [ -d /etc/systemd/system ] && cat >/etc/systemd/system/gozzard-agent.service <<'GOZZARD-END'
{{.Unit}}
GOZZARD-END
		} || true
}

main() {
	locale
	[ "$(id -u)" = 0 ] || fail "run it as root, for example with sudo" "请以 root 运行，例如使用 sudo"
	[ ! -e /var/lib/gozzard-agent/enrolment.json ] ||
		fail "this host is a member of a fleet already: see gozzard agent status --data /var/lib/gozzard-agent, or leave it with gozzard agent leave" \
			"本机已是某个机群的成员：查看用 gozzard agent status --data /var/lib/gozzard-agent，退出用 gozzard agent leave"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	cat >"$work/ca.pem" <<'GOZZARD-END'
{{.Authority}}
GOZZARD-END
	grep -q CERTIFICATE "$work/ca.pem" || : >"$work/ca.pem"

	umask 077
	token "$work/token"
	umask 022
	program
	unit

	# The token has the fingerprint of the server: join checks it before it sends the token.
	# shellcheck disable=SC2086 # the flags are words
	LC_ALL=$language LANGUAGE= /usr/bin/gozzard agent join --server '{{.Server}}' --token-file "$work/token" --data /var/lib/gozzard-agent ${GOZZARD_JOIN_FLAGS:-} >"$work/joined" || {
		code=$?
		text "this host did not join, for the reason above; the program and the unit of the agent stay: correct it, then run the same command again" \
			"本机没有加入，原因见上；程序和 Agent 的单元保留：处理后再次运行同一命令" >&2
		exit "$code"
	}
	sed -e 's/; start the agent with: .*//' -e 's/；启动 Agent：.*//' "$work/joined" # this script does it

	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl enable --now gozzard-agent.service
		text "the agent runs: see systemctl status gozzard-agent" "Agent 已运行：查看用 systemctl status gozzard-agent"
	else
		text "systemd does not run here. Start the agent with: gozzard agent --config /etc/gozzard/agent.yaml --data /var/lib/gozzard-agent" \
			"本机没有运行 systemd。启动 Agent：gozzard agent --config /etc/gozzard/agent.yaml --data /var/lib/gozzard-agent"
	fi
}

main
