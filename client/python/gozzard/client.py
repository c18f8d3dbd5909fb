"""The client."""

import base64
import json
import time
import uuid

from .error import Error, TaskFailed
from .operations import Operations
from .transport import Transport, find_credentials


class Client(Operations):
    """Sends requests to one server.

    Without arguments it uses the credentials file that the command line would use: $GOZZARD_CREDENTIALS, ./data/dev.json,
    ./data/credentials.json or /var/lib/gozzard/credentials.json. credentials names another file, or is a dict with the same keys. token is
    the token of a person, in place of an app.
    """

    def __init__(self, url=None, credentials=None, token=None, timeout=60):
        known = {}
        if isinstance(credentials, dict):
            known = credentials
        elif credentials or not (url and token):
            known = find_credentials(credentials)
        if not known.get("bk_app_code"):
            token = token or known.get("bk_token")
        if token:
            headers = {"Authorization": "Bearer " + token}
        else:
            keys = ("bk_app_code", "bk_app_secret", "bk_username", "bk_token")
            headers = {"X-Bkapi-Authorization": json.dumps({k: known[k] for k in keys if known.get(k)})}
        url = url or known.get("url")
        if not url:
            raise Error("no server is named: give url=, or a credentials file with url in it", kind="invalid")
        self.transport = Transport(url, headers, known.get("ca"), timeout)

    # Anything else of the API

    def call(self, method, path, query=None, body=None):
        """Send any request of the API, such as call("GET", "/api/v1/relays")."""
        headers = {"Idempotency-Key": str(uuid.uuid4())} if method in ("POST", "PUT", "DELETE") else None
        return self.transport.call(method, path, query, body, headers)

    # What is there

    def whoami(self):
        """How the server knows this caller, with its grants."""
        return self.call("GET", "/api/v1/whoami")

    def hosts(self):
        """All hosts that the caller may see."""
        return list(self._pages("/api/v1/hosts", "hosts", {}))

    def processes(self, name=None, namespace=None, host=None, state=None, label=None, **business):
        """Processes with their live status. Names may have * and ?; state, host and label may be lists. business: biz, env, set, module,
        expression."""
        query = {"name": name, "namespace": namespace, "host": host, "state": state, "label": label, **business}
        return list(self._pages("/api/v1/processes", "processes", query))

    def definitions(self, name=None, namespace=None, host=None):
        """Recorded definitions of processes."""
        return list(self._pages("/api/v1/definitions", "definitions", {"name": name, "namespace": namespace, "host": host}))

    def events(self, since=None, kind=None, name=None, namespace=None, host=None, limit=None):
        """The newest events that match, the oldest first. since is a time in RFC 3339."""
        query = {"since": since, "kind": kind, "name": name, "namespace": namespace, "host": host, "limit": limit}
        return self.call("GET", "/api/v1/events", query)["events"]

    def follow_events(self, kind=None, name=None, namespace=None, host=None, timeout=None):
        """Yield events as they happen, until the caller stops or the server says nothing for timeout seconds."""
        query = {"kind": kind, "name": name, "namespace": namespace, "host": host}
        with self.transport.open("GET", "/api/v1/events/stream", query, timeout=timeout or 3600) as stream:
            data = []
            for line in stream:
                line = line.decode("utf-8").rstrip("\r\n")
                if line.startswith("data:"):
                    data.append(line[5:].lstrip(" "))
                elif not line and data:
                    yield json.loads("\n".join(data))
                    data = []

    def logs(self, name, host, namespace="default", lines=100):
        """The last lines that a process printed on a host."""
        query = {"namespace": namespace, "name": name, "host": host, "lines": lines}
        return self.call("GET", "/api/v1/logs", query)["text"]

    def history(self, name, host, namespace="default", points=None):
        """What the agent of a host measured of a process: CPU, memory, descriptors and restarts over time."""
        return self.call("GET", "/api/v1/history", {"namespace": namespace, "name": name, "host": host, "points": points})

    # Tasks

    def task(self, task_id, wait=None, show=None):
        """A task with its attempts. wait is how many seconds the server may wait for a change; show chooses attempts, such as "failed"."""
        return self.call("GET", "/api/v1/tasks/" + task_id, {"wait": None if wait is None else "%ds" % wait, "show": show})

    def tasks(self, state=None, mine=None, name=None, namespace=None, host=None, limit=None):
        """The newest tasks that the caller may read, the newest first."""
        query = {"state": state, "mine": mine, "name": name, "namespace": namespace, "host": host, "limit": limit}
        return self.call("GET", "/api/v1/tasks", query)["tasks"]

    def wait(self, task_id, timeout=600, check=True):
        """Wait until all attempts of a task have their verdict, and return the task. With check, a failed attempt raises TaskFailed."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            task = self.task(task_id, wait=max(0, min(30, int(left))))
            if task["final"]:
                break
            if left <= 0:
                raise Error("task %s has no verdict for %d of %d after %d s; it goes on" % (
                    task_id, task["counts"]["running"], task["counts"]["targets"], timeout), kind="timeout")
        if check and task["counts"]["failed"]:
            raise TaskFailed(task)
        return task

    def retry(self, task_id):
        """Repeat the failed attempts of a task as a new task."""
        return self.call("POST", "/api/v1/tasks/%s/retry" % task_id, body={})

    # Businesses

    def businesses(self):
        """All businesses that the caller may see."""
        return self.call("GET", "/api/v1/topology")["businesses"]

    def business(self, biz):
        """The topology document of a business."""
        return self.call("GET", "/api/v1/topology/%d" % biz)

    def business_tree(self, biz, env=None):
        """The processes of a business, counted by set and module."""
        return self.call("GET", "/api/v1/topology/%d/tree" % biz, {"env": env})

    def apply_business(self, biz, document, dry_run=False):
        """Replace a business by a topology document: a dict, or a text in YAML."""
        return self.call("PUT", "/api/v1/topology/%d" % biz, {"dry_run": dry_run or None}, document)

    # Files

    def read_file(self, path, host, namespace="default", account=None):
        """The content of a file on a host, as bytes; None if there is no such file."""
        answer = self.call("GET", "/api/v1/files", {"namespace": namespace, "host": host, "path": path, "account": account})
        if not answer["exists"]:
            return None
        if answer.get("content_base64") is not None:
            return base64.b64decode(answer["content_base64"])
        return answer.get("content", "").encode("utf-8")

    def write_file(self, path, content, hosts, namespace="default", account=None, **options):
        """Write a file on hosts, as a task. content is bytes or a text; options: mode, group, expect, line_ends, confirm."""
        raw = content.encode("utf-8") if isinstance(content, str) else content
        body = {"namespace": namespace, "path": path, "hosts": self.named(hosts), "account": account,
                "content_base64": base64.b64encode(raw).decode("ascii"), **options}
        return self.call("PUT", "/api/v1/files", body={k: v for k, v in body.items() if v is not None})

    def _pages(self, path, key, query):
        """Yield all items of a list, page by page."""
        start = 0
        while True:
            answer = self.call("GET", path, {**query, "start": start or None})
            yield from answer[key]
            start += len(answer[key])
            if not answer[key] or start >= answer["count"]:
                return
