//go:build linux

package pages_test

// reference is the command reference in parts: every example of the help runs. Before each part, reference.sh is read.
func reference() []page {
	parts := []page{referenceOperations(), referenceProcesses(), referenceAccounts(), referencePeople(), referenceAgent(),
		referenceBusiness(), referenceHosts(), referenceDev(), referenceAudit(), referenceNotify(), referenceBackup(), referenceServers()}
	for i := range parts {
		parts[i].file = "docs/command-reference.md"
		parts[i].before = ". /tests/reference.sh\n" + parts[i].before
	}
	return parts
}

// referenceOperations has the verbs that act on processes. Each is used three times: for a process on one host, for
// one on several hosts, and for a business. What is started was stopped before.
func referenceOperations() page {
	p := page{part: "_operations", nouns: "kill manage reload restart start stop unmanage",
		before: "fleet; processes; business; applied"}
	for _, verb := range []string{"kill", "manage", "reload", "restart", "start", "stop", "unmanage"} {
		section := rule{begins: "## gozzard " + verb, first: "one_web"}
		if verb == "start" {
			section.first += "; all_stop"
		}
		p.rules = append(p.rules, section,
			rule{begins: "gozzard " + verb + " web -n shop --all-hosts", first: "two_webs"})
	}
	return p
}

// referenceProcesses has what is about definitions and the state of processes.
func referenceProcesses() page {
	return page{part: "_processes", nouns: "chart diff edit events file logs ps register run show status task tasks top unregister",
		replaced: []string{"20240102030405:17", "$task", "10.0.0.5", "10.0.0.2", "9f86d08…", "$(kept)",
			"--from -", "--from - <web.conf"},
		before: `fleet; processes; business; applied; web_file
install -o shop -d /etc/shop
inside 2 mount -t tmpfs -o uid=shop,mode=0755 shop /etc/shop
echo 'port 8080' >web.conf
export EDITOR='sed -i s/8080/8081/'
generate-definitions() { cat web.yaml; }
soon gozzard chart web`,
		rules: []rule{
			{begins: "gozzard diff -f web.yaml", how: fails, then: "gozzard register -f web.yaml"}, // they differ
			{begins: "gozzard edit web", how: onTerminal}, {begins: "gozzard edit web", how: onTerminal,
				first: "gozzard register -f web.yaml"},
			{begins: "EDITOR", first: "gozzard register -f web.yaml"},
			{begins: "gozzard events -n shop 'web-*' -f", how: follow},
			{begins: "gozzard file diff", how: fails,
				first: "echo 'port 80' >old.conf; gozzard file put /etc/shop/web.conf --from old.conf --account shop --host 10.0.0.1"},
			{begins: "gozzard file put /etc/shop/web.conf --from web.conf --account shop --host 10.0.0.1 --expect absent",
				first: "rm /etc/shop/web.conf"},
			{begins: "gozzard logs web -f", how: follow},
			{begins: "## gozzard ps", first: `broken_task
gozzard stop web-1 -n shop
gozzard stop --biz 2 -e 'front.*.*.nginx.*'
gozzard unmanage worker -n shop --all-hosts`},
			{begins: "gozzard ps -n shop --watch", how: follow},
			{begins: "gozzard run --name web", first: "gozzard stop python3"},
			{begins: "gozzard run --proc-name", then: "gozzard status serve"},
			{begins: "## gozzard status",
				first: "one_web; process web 10.0.0.1; process web-1 10.0.0.1; gozzard stop web -n default; " +
					"gozzard unregister web -n default"},
			{begins: "## gozzard task", first: "task=$(broken_task)"},
			{begins: "gozzard task 2024",
				how: fails}, {begins: "gozzard task 2024", how: fails}, {begins: "gozzard task 2024", how: fails},
			{begins: "gozzard task 20240102030405:17 --retry-failed --dry-run"},
			{begins: "gozzard task 20240102030405:17 --retry-failed", first: "script /srv/broken 'exec sleep 1000'"},
			{begins: "gozzard task 20240102030405:17 --cancel", first: "task=$(waiting_task)"},
			{begins: "gozzard unregister web -n shop --host", first: "process web 10.0.0.1"},
		}}
}

// referenceAccounts has apps and rights.
func referenceAccounts() page {
	return page{part: "_accounts", nouns: "app grant request",
		replaced: []string{"3 5f0c1c5d2f8e4a7bb0c2d7d7c1a0e9f4", "$request $digest",
			"request reject 3", "request reject $request"},
		before: "enrolled; people",
		rules: []rule{
			{begins: "## gozzard app change",
				first: "gozzard app create monitor --role viewer --asserts-users; gozzard app create portal"},
			{begins: "gozzard app create monitor", first: "gozzard app delete monitor"},
			{begins: "## gozzard app disable", then: "export GOZZARD_CREDENTIALS=/src/bob.json; gozzard app list"},
			{begins: "## gozzard app enable", then: "export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json"},
			{begins: "## gozzard app retire", first: "gozzard app create shop"},
			{begins: "gozzard grant check --user alice",
				first: "gozzard grant remove --user alice --role admin", how: fails},
			{begins: "gozzard grant check --app shop", how: fails},
			{begins: "## gozzard grant resolve", first: "unit_ends server; older_grants",
				then: "server_again; gozzard grant add --user alice --role admin; server_again --second-person admin-grants"},
			{begins: "## gozzard request approve", first: "export GOZZARD_CREDENTIALS=/src/bob.json; requested"},
			{begins: "## gozzard request reject", first: "requested"},
		}}
}

// referencePeople has the users: first alice is made, at the end of her sections she leaves.
func referencePeople() page {
	return page{part: "_people", nouns: "user",
		replaced: []string{"--password-file -", "--password-file - <alice.txt", "login alice --url", "login alice <alice.txt --url",
			"1f2e3d4c5b6a", "$(token_of_alice)", "123456", "$(code)"},
		before: `enrolled
passwords
cp /var/lib/gozzard/ca.pem .
token_of_alice() { gozzard user token list alice | awk '/laptop/ { print $1 }'; }`,
		rules: []rule{
			{begins: "## gozzard user delete",
				then: "gozzard user create alice --password-file alice.txt --reuse-name"},
			{begins: "gozzard user login alice --url http:", first: `background 0 "gozzard server --data /var/lib/here --agent-listen 127.0.0.1:4231"
export GOZZARD_CREDENTIALS=/var/lib/here/credentials.json; soon gozzard user create alice --password-file alice.txt`,
				then: "export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json"},
			{begins: "## gozzard user offboard",
				then: "gozzard user delete alice; gozzard user create alice --reuse-name --password-file alice.txt"},
			{begins: "gozzard user password alice --password-file new.txt --old", first: "logged_in"},
			{begins: "## gozzard user token create", first: "logged_in; gozzard app create portal"},
			{begins: "## gozzard user totp confirm", first: "enrolled_factor"},
			{begins: "## gozzard user totp enrol", first: "gozzard user totp remove alice"},
			{begins: "## gozzard user totp remove",
				first: `enrolled_factor; gozzard user totp confirm alice --password-file alice.txt --code "$(code)"`},
		}}
}

// referenceAgent has the agent of one host.
func referenceAgent() page {
	const (
		clean = `everything_ends; rm -rf /etc/gozzard/policy.yaml /run/gozzard
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json
background 0 "gozzard server --data /var/lib/gozzard --listen 0.0.0.0:8443 --agent-listen 0.0.0.0:4230"
soon gozzard hosts
(umask 077; gozzard token create --uses 9 >token)
`
		joins = `gozzard agent join --server https://10.0.0.1:8443 --token-file token --data /var/lib/gozzard-agent --allow-root --allow-path /
`
		runs = `background 0 "gozzard agent --data /var/lib/gozzard-agent"; soon online gozzard
gozzard run --name web --dir / -- sleep 1000
`
	)
	return page{part: "_agent", nouns: "agent", before: "everything_installed\n" + clean + joins,
		rules: []rule{
			{begins: "gozzard agent --data /var/lib/gozzard-agent", how: background, then: "soon online gozzard"},
			{begins: "gozzard agent --data /var/lib/gozzard-agent --ip", how: background, first: `everything_ends
background 0 "gozzard server --data /var/lib/gozzard"
export GOZZARD_CREDENTIALS=/var/lib/gozzard/credentials.json; soon gozzard hosts`,
				then: "soon online gozzard"},
			{begins: "setpriv", first: clean + joins + `chown -R gozzard: /var/lib/gozzard-agent
setpriv --reuid gozzard --regid gozzard --init-groups --inh-caps +setuid,+setgid,+kill --ambient-caps +setuid,+setgid,+kill \
  gozzard agent --data /var/lib/gozzard-agent --policy /etc/gozzard/policy.yaml >/tmp/agent.log 2>&1 </dev/null &
soon online gozzard`},
			{begins: "## gozzard agent join", first: clean}, {begins: "gozzard agent join"},
			{begins: "gozzard agent join", first: "host_gone"}, {begins: "gozzard agent join", first: "host_gone"},
			{begins: "## gozzard agent leave", first: "host_gone\n" + joins + runs + "agent_ends"},
			{begins: "gozzard agent leave --data /var/lib/gozzard-agent --keep",
				first: "host_gone\n" + joins + runs + "agent_ends"},
			{begins: "## gozzard agent policy", first: "host_gone\n" + joins + runs},
			{begins: "gozzard agent status --socket", first: `agent_ends; mkdir -p /run/gozzard
background 0 "gozzard agent --data /var/lib/gozzard-agent --socket /run/gozzard/agent.sock"; soon test -S /run/gozzard/agent.sock`},
			{begins: "gozzard agent update --data /var/lib/gozzard-agent --from",
				first: "agent_ends; release_1_2_3; cp dist/release.pub /etc/gozzard/; " +
					"echo 'allow_downgrade: true' >>/etc/gozzard/policy.yaml"},
		}}
}
