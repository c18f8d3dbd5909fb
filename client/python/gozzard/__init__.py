"""Client of the HTTP API of Gozzard.

    from gozzard import Client

    fleet = Client()                                    # the credentials file that the command line uses
    task = fleet.restart("web", namespace="shop")       # on all hosts that have it
    result = fleet.wait(task["task_id"])
    print(result["counts"])

Answers are dicts, as the API has them: docs/openapi.json describes every key. An error of the server is an Error.
"""

from .client import Client
from .error import Error, TaskFailed

__all__ = ["Client", "Error", "TaskFailed"]
