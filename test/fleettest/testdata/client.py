"""Drives a fleet of two hosts with the Python client, as a script of an operator would."""

import sys
import threading

from gozzard import Client, Error, TaskFailed

fleet = Client(credentials=sys.argv[1])
folder = sys.argv[2]
hosts = ["127.0.0.1", "127.0.0.2"]

assert fleet.whoami()["app"], fleet.whoami()
assert sorted(a["ip"] for h in fleet.hosts() for a in h["addrs"]) == hosts, fleet.hosts()

# A definition on two hosts, started, and its state.
seen = []
follower = threading.Thread(target=lambda: seen.append(next(fleet.follow_events(name="pyclient", namespace="py"))), daemon=True)
follower.start()
program = {"name": "pyclient", "namespace": "py", "command": ["sh", "-c", "echo hello from pyclient; exec sleep 3600"], "folder": folder, "proc_name": "sleep",
           "user": "nobody"}
preview = fleet.register(program, hosts, dry_run=True)
assert preview["targets"] == 2, preview
fleet.wait(fleet.register(program, hosts)["task_id"])
assert len(fleet.definitions("pyclient", "py")) == 2
task = fleet.wait(fleet.start("pyclient", "py")["task_id"])
assert task["counts"]["done"] == 2, task
running = fleet.processes(namespace="py", state="running")
assert len(running) == 2 and all(p["pid"] > 0 for p in running), running
assert "hello from pyclient" in fleet.logs("pyclient", hosts[0], "py")

# One host, then all.
fleet.wait(fleet.stop("pyclient", "py", hosts[0])["task_id"])
assert [p["host"]["ip"] for p in fleet.processes("py*", "py", state="running")] == [hosts[1]]
pid = fleet.processes(namespace="py", state="running")[0]["pid"]
fleet.wait(fleet.restart("pyclient", "py", [hosts[1]])["task_id"])
assert fleet.processes(namespace="py", state="running")[0]["pid"] != pid
fleet.wait(fleet.unmanage("pyclient", "py", hosts[1])["task_id"])
fleet.wait(fleet.manage("pyclient", "py", hosts[1])["task_id"])
fleet.wait(fleet.kill("pyclient", "py", hosts[1])["task_id"])
follower.join(60)
assert seen and seen[0]["name"] == "pyclient", seen
assert fleet.events(namespace="py"), "there are no events"
assert fleet.tasks(namespace="py", mine=True), "there are no tasks"

# What goes wrong is an error with its reason.
try:
    fleet.start("nosuch", "py")
    raise AssertionError("a process that does not exist was started")
except Error as e:
    assert e.kind == "not_found", e
try:
    fleet.register({**program, "commnd": ["x"]}, hosts)
    raise AssertionError("a wrong key was accepted")
except Error as e:
    assert e.kind == "invalid" and "commnd" in str(e), e
fleet.wait(fleet.register({**program, "name": "pybroken", "command": ["/no/such/program"]}, hosts[0])["task_id"])
accepted = fleet.start("pybroken", "py")
try:
    fleet.wait(accepted["task_id"])
    raise AssertionError("a program that does not exist was started")
except TaskFailed as e:
    assert e.task["counts"]["failed"] == 1 and "pybroken" in str(e), e
fleet.wait(fleet.retry(accepted["task_id"])["task_id"], check=False)

fleet.wait(fleet.unregister(["pyclient", "pybroken"], "py")["task_id"], check=False)
assert not fleet.definitions(namespace="py")
print("all done")
