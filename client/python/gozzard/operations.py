"""What changes processes."""


class Operations:
    """Registers processes, and starts and stops them. Every method returns the accepted task: give its task_id to wait.

    names is a name or a list of names, which may have * and ?. Without hosts, all hosts that have the process are meant. A host is an
    address, or a dict with agent, or with ip and cloud. Options are those of the API: biz, env, sets, modules and expression select by
    business in place of namespace; when_offline="wait" and wait_seconds wait for hosts that are offline; confirm is the number of processes
    that may stop, which the server asks for in large operations; dry_run=True answers with what would happen.
    """

    def operate(self, action, names=None, namespace=None, hosts=None, **options):
        """Do an action: start, stop, restart, reload, kill, manage, unmanage or query."""
        return self.call("POST", "/api/v1/operations", body={"action": action, **self._selection(names, namespace, hosts, options)})

    def start(self, names=None, namespace=None, hosts=None, **options):
        """Start processes, and supervise them from then on."""
        return self.operate("start", names, namespace, hosts, **options)

    def stop(self, names=None, namespace=None, hosts=None, **options):
        """Stop processes. They stay stopped."""
        return self.operate("stop", names, namespace, hosts, **options)

    def restart(self, names=None, namespace=None, hosts=None, **options):
        """Stop and start processes."""
        return self.operate("restart", names, namespace, hosts, **options)

    def reload(self, names=None, namespace=None, hosts=None, **options):
        """Make processes read their configuration again, by the reload command of their definitions."""
        return self.operate("reload", names, namespace, hosts, **options)

    def kill(self, names=None, namespace=None, hosts=None, **options):
        """Kill processes with all that they started."""
        return self.operate("kill", names, namespace, hosts, **options)

    def manage(self, names=None, namespace=None, hosts=None, **options):
        """Supervise processes, without touching them now."""
        return self.operate("manage", names, namespace, hosts, **options)

    def unmanage(self, names=None, namespace=None, hosts=None, **options):
        """Supervise processes no more. They keep running."""
        return self.operate("unmanage", names, namespace, hosts, **options)

    def register(self, document, hosts=None, **options):
        """Register a process by its definition, a dict with the keys of a document such as {"name": "web", "command": ["sleep", "9"]}."""
        body = {**document, **options}
        if hosts is not None:
            body["hosts"] = self.named(hosts)
        return self.call("PUT", "/api/v1/processes", body=body)

    def unregister(self, names=None, namespace=None, hosts=None, **options):
        """Remove definitions from hosts. Running processes keep running."""
        return self.call("DELETE", "/api/v1/processes", body=self._selection(names, namespace, hosts, options))

    @staticmethod
    def named(hosts):
        """Hosts as the API has them."""
        if isinstance(hosts, (str, dict)):
            hosts = [hosts]
        return [h if isinstance(h, dict) else {"ip": h} for h in hosts]

    def _selection(self, names, namespace, hosts, options):
        body = dict(options)
        if names is not None:
            body["names"] = [names] if isinstance(names, str) else list(names)
        if namespace is not None:
            body["namespace"] = namespace
        if hosts is not None:
            body["hosts"] = self.named(hosts)
        elif "biz" not in options and "processes" not in options:
            body["all"] = True
        return body
