"""What goes wrong."""


class Error(Exception):
    """The server rejected a request, or could not be reached.

    kind says what the caller can do: invalid, unauthenticated, user_forbidden, not_found, conflict, rate_limited, unavailable and others, as
    in the API. faults lists every fault of the request with its place. status is the HTTP status, 0 without an answer.
    """

    def __init__(self, message, kind="internal", status=0, faults=None, request_id=""):
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.status = status
        self.faults = faults or []
        self.request_id = request_id

    def __str__(self):
        places = "".join("\n  %s: %s" % (f["path"] or "request", f["text"]) for f in self.faults)
        return "%s (%s)%s" % (self.message, self.kind, places)


class TaskFailed(Error):
    """A task has ended, and some of its attempts have failed. task is the task with its attempts."""

    def __init__(self, task):
        failed = [a for a in task["attempts"] if a["verdict"] == "failed"]
        first = "; ".join("%s/%s on %s: %s" % (a["namespace"], a["name"], a["host"].get("ip", ""), a.get("message", "")) for a in failed[:3])
        super().__init__("task %s: %d of %d failed: %s" % (task["task_id"], task["counts"]["failed"], task["counts"]["targets"], first),
                         kind="failed")
        self.task = task
