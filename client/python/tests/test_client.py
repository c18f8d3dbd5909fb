"""Compares the client with docs/openapi.json, and tries what it does with answers."""

import http.server
import inspect
import json
import os
import pathlib
import re
import tempfile
import threading
import unittest

from gozzard import Client, Error, TaskFailed

API = json.loads((pathlib.Path(__file__).parents[3] / "docs" / "openapi.json").read_text(encoding="utf-8"))
METHODS = {"get", "post", "put", "delete"}

# One call of each method with all of its parameters.
CALLS = {
    "whoami": lambda c: c.whoami(),
    "hosts": lambda c: c.hosts(),
    "processes": lambda c: c.processes("w*", "shop", ["10.0.0.1"], ["running"], "tier=front", biz=2, env="3", set="1", module="2", expression="*"),
    "definitions": lambda c: c.definitions("w", "shop", "10.0.0.1"),
    "events": lambda c: c.events("2026-01-02T03:04:05Z", "process_exited", "w", "shop", "10.0.0.1", 5),
    "follow_events": lambda c: list(c.follow_events("process_exited", "w", "shop", "10.0.0.1")),
    "logs": lambda c: c.logs("w", "10.0.0.1", "shop", 7),
    "history": lambda c: c.history("w", "10.0.0.1", "shop", 10),
    "task": lambda c: c.task("GSETASK:1", 5, "failed"),
    "tasks": lambda c: c.tasks("failed", True, "w", "shop", "10.0.0.1", 3),
    "wait": lambda c: c.wait("GSETASK:1"),
    "retry": lambda c: c.retry("GSETASK:1"),
    "businesses": lambda c: c.businesses(),
    "business": lambda c: c.business(2),
    "business_tree": lambda c: c.business_tree(2, "3"),
    "apply_business": lambda c: c.apply_business(2, "biz: 2\n", dry_run=True),
    "read_file": lambda c: c.read_file("/etc/x", "10.0.0.1", "shop", "www"),
    "write_file": lambda c: c.write_file("/etc/x", "text", "10.0.0.1", "shop", "www", mode="0644", group="www", expect="x", line_ends="lf",
                                         confirm=1),
    "operate": lambda c: c.operate("query", ["a", "b"], "shop", [{"agent": "x"}, "10.0.0.1"], when_offline="wait", wait_seconds=5),
    "start": lambda c: c.start("w", "shop"),
    "stop": lambda c: c.stop("w", biz=2, env="3", sets=["1"], modules=["2"], expression="*", confirm=3),
    "restart": lambda c: c.restart("w", dry_run=True),
    "reload": lambda c: c.reload("w"),
    "kill": lambda c: c.kill("w"),
    "manage": lambda c: c.manage("w"),
    "unmanage": lambda c: c.unmanage("w"),
    "register": lambda c: c.register({"name": "w", "namespace": "shop", "spec": {}}, "10.0.0.1", dry_run=True),
    "unregister": lambda c: c.unregister("w", "shop", "10.0.0.1"),
}
NOT_REQUESTS = {"call", "named"}


class Recorder(http.server.BaseHTTPRequestHandler):
    """Keeps requests, and answers as the test says."""

    def do(self):
        size = int(self.headers.get("Content-Length") or 0)
        self.server.requests.append((self.command, self.path, dict(self.headers), self.rfile.read(size)))
        status, headers, body = self.server.answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = do

    def log_message(self, *args):
        pass


EVERYTHING = {"final": True, "counts": {"targets": 1, "failed": 0, "running": 0}, "attempts": [], "count": 0, "exists": True, "content": "é",
              "text": "log", **{k: [] for k in ("hosts", "processes", "definitions", "events", "tasks", "businesses")}}


class WithServer(unittest.TestCase):
    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
        self.server.requests, self.server.answer = [], (200, {}, json.dumps(EVERYTHING).encode())
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        self.client = Client(credentials={"url": self.url, "bk_app_code": "a", "bk_app_secret": "s", "bk_username": "u"})


class TestOpenAPI(WithServer):
    """Every request of the client is one that the API describes."""

    def test_every_method_has_a_call(self):
        public = {n for n, f in inspect.getmembers(Client, inspect.isfunction) if not n.startswith("_")}
        self.assertEqual(public - NOT_REQUESTS, set(CALLS))

    def test_requests(self):
        for name, call in CALLS.items():
            with self.subTest(name):
                self.server.requests.clear()
                call(self.client)
                method, address, _, body = self.server.requests[0]
                path, _, query = address.partition("?")
                operation = self.find(method.lower(), path)
                allowed = {p["name"] for p in operation.get("parameters", []) if p["in"] == "query"}
                for pair in filter(None, query.split("&")):
                    self.assertIn(pair.split("=")[0], allowed, address)
                if body and body[:1] == b"{":
                    schema = operation["requestBody"]["content"]["application/json"]["schema"]
                    self.check(json.loads(body), schema, name)

    def find(self, method, path):
        for pattern, operations in API["paths"].items():
            if re.fullmatch(re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(pattern)), path) and method in operations:
                return operations[method]
        self.fail("the API has no %s %s" % (method, path))

    def check(self, value, schema, place):
        while "$ref" in schema:
            schema = API["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
        for one in schema.get("anyOf", schema.get("oneOf", [])):
            if one.get("type") in ("object", "array"):
                schema = one
        properties = schema.get("properties")
        if isinstance(value, dict) and properties:
            for key, inner in value.items():
                self.assertIn(key, properties, place)
                self.check(inner, properties[key], place + "." + key)
        elif isinstance(value, list) and "items" in schema:
            for item in value:
                self.check(item, schema["items"], place + "[]")


class TestAnswers(WithServer):
    def test_error_of_the_api(self):
        self.server.answer = (403, {}, json.dumps({"error": {"kind": "user_forbidden", "message": "no", "request_id": "r",
                                                             "faults": [{"path": "hosts[0]", "text": "unknown"}]}}).encode())
        with self.assertRaises(Error) as caught:
            self.client.hosts()
        self.assertEqual((caught.exception.kind, caught.exception.status, caught.exception.request_id), ("user_forbidden", 403, "r"))
        self.assertIn("hosts[0]: unknown", str(caught.exception))

    def test_page_of_a_proxy(self):
        self.server.answer = (502, {}, b"<html>bad gateway</html>")
        with self.assertRaises(Error) as caught:
            self.client.hosts()
        self.assertEqual(caught.exception.kind, "unavailable")

    def test_nonsense(self):
        self.server.answer = (200, {}, b"<html>hello</html>")
        self.assertRaises(Error, self.client.hosts)

    def test_redirect_gets_no_secret(self):
        self.server.answer = (302, {"Location": self.url + "/elsewhere"}, b"")
        self.assertRaises(Error, self.client.hosts)
        self.assertEqual(len(self.server.requests), 1)

    def test_failed_attempts(self):
        task = {"task_id": "T", "final": True, "counts": {"targets": 2, "failed": 1, "running": 0}, "attempts": [
            {"verdict": "done"}, {"verdict": "failed", "namespace": "shop", "name": "web", "host": {"ip": "10.0.0.1"}, "message": "no such file"}]}
        self.server.answer = (200, {}, json.dumps(task).encode())
        with self.assertRaisesRegex(TaskFailed, "1 of 2 failed: shop/web on 10.0.0.1: no such file"):
            self.client.wait("T")
        self.assertEqual(self.client.wait("T", check=False)["counts"]["failed"], 1)

    def test_a_task_that_takes_too_long(self):
        task = {"task_id": "T", "final": False, "counts": {"targets": 2, "failed": 0, "running": 2}, "attempts": []}
        self.server.answer = (200, {}, json.dumps(task).encode())
        with self.assertRaisesRegex(Error, "no verdict for 2 of 2"):
            self.client.wait("T", timeout=0)

    def test_events(self):
        self.server.answer = (200, {}, b': hello\n\ndata: {"kind": "a"}\n\nid: 2\ndata: {"kind":\ndata: "b"}\n\n')
        self.assertEqual([e["kind"] for e in self.client.follow_events()], ["a", "b"])


class TestCredentials(unittest.TestCase):
    def test_no_secret_over_a_network(self):
        with self.assertRaisesRegex(Error, "unencrypted"):
            Client(url="http://10.0.0.1:8080", credentials={"bk_app_code": "a"})

    def test_no_url(self):
        self.assertRaises(Error, Client, credentials={"bk_app_code": "a"})
        self.assertRaises(Error, Client, url="ftp://x", credentials={"bk_app_code": "a"})

    def test_file_of_another_account(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "data"))
            name = os.path.join(folder, "data", "dev.json")
            with open(name, "w", encoding="utf-8") as f:
                json.dump({"url": "http://127.0.0.1:1"}, f)
            before, known = os.getcwd(), os.environ.pop("GOZZARD_CREDENTIALS", None)
            os.chdir(folder)
            try:
                os.chmod(name, 0o600)
                self.assertEqual(Client().transport.url, "http://127.0.0.1:1")
                os.chmod(name, 0o666)
                with self.assertRaisesRegex(Error, "another account"):
                    Client()
            finally:
                os.chdir(before)
                if known:
                    os.environ["GOZZARD_CREDENTIALS"] = known

    def test_no_server(self):
        with self.assertRaises(Error) as caught:
            Client(credentials={"url": "http://127.0.0.1:1", "bk_app_code": "a"}).hosts()
        self.assertEqual(caught.exception.kind, "unavailable")


if __name__ == "__main__":
    unittest.main()
