"""How requests are sent: credentials, TLS, JSON and errors."""

import ipaddress
import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request

from .error import Error

# Where the command line looks for credentials, too.
PLACES = ["data/dev.json", "data/credentials.json", "/var/lib/gozzard/credentials.json"]


def find_credentials(path=None):
    """Read the credentials file: the given one, $GOZZARD_CREDENTIALS, or one of the usual places."""
    path = path or os.environ.get("GOZZARD_CREDENTIALS")
    for name in [path] if path else PLACES:
        try:
            with open(name, encoding="utf-8") as f:
                if not path and not os.path.isabs(name):
                    _check_owner(f, name)
                return json.load(f)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as e:
            raise Error("cannot read the credentials file %s: %s" % (name, e), kind="invalid") from e
    raise Error("there is no credentials file %s: give one with credentials=, or in GOZZARD_CREDENTIALS" % (path or " or ".join(PLACES)),
                kind="invalid")


def _check_owner(f, name):
    """Reject a file that another account made or can change: it decides which server gets the words of the caller."""
    info = os.fstat(f.fileno())
    if hasattr(os, "geteuid") and (info.st_uid not in (0, os.geteuid()) or info.st_mode & 0o022):
        raise Error("%s is not read, because another account has made it or can change it: name it with credentials=" % name, kind="invalid")


def is_local(host):
    """Say whether an address is on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: it would carry the secret to another place."""

    def redirect_request(self, *args, **kwargs):
        return None


class Transport:
    """Sends requests to one server."""

    def __init__(self, url, headers, ca=None, timeout=60):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Error("%r is not a URL of a server: write http://HOST:PORT or https://HOST:PORT" % url, kind="invalid")
        if parts.scheme == "http" and not is_local(parts.hostname):
            raise Error("%s would send the secret unencrypted over the network: use https" % url, kind="invalid")
        self.url, self.headers, self.timeout = url.rstrip("/"), headers, timeout

        handlers = [_NoRedirect, urllib.request.ProxyHandler({}) if is_local(parts.hostname) else urllib.request.ProxyHandler()]
        if parts.scheme == "https":
            context = ssl.create_default_context(cadata=ca) if ca else ssl.create_default_context()
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self.opener = urllib.request.build_opener(*handlers)

    def open(self, method, path, query=None, body=None, headers=None, timeout=None):
        """Send a request, and return the open answer."""
        url = self.url + path
        pairs = [(k, v) for k, values in (query or {}).items() for v in (values if isinstance(values, (list, tuple)) else [values])]
        text = urllib.parse.urlencode([(k, ("true" if v else "false") if isinstance(v, bool) else v) for k, v in pairs if v is not None])
        if text:
            url += "?" + text

        request = urllib.request.Request(url, method=method)
        for name, value in {**self.headers, **(headers or {})}.items():
            request.add_header(name, value)
        if body is not None:
            kind = "application/yaml" if isinstance(body, str) else "application/json"
            request.add_header("Content-Type", kind)
            request.data = body.encode("utf-8") if isinstance(body, str) else json.dumps(body).encode("utf-8")

        try:
            return self.opener.open(request, timeout=timeout or self.timeout)
        except urllib.error.HTTPError as e:
            with e:
                raise _error_of(e.code, e.read()) from None
        except OSError as e:
            raise Error("cannot reach %s: %s" % (self.url, getattr(e, "reason", e)), kind="unavailable") from e

    def call(self, method, path, query=None, body=None, headers=None, timeout=None):
        """Send a request, and return the answer as Python values."""
        with self.open(method, path, query, body, headers, timeout) as answer:
            text = answer.read()
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError as e:
            raise Error("%s answers with what is not JSON: %.100r" % (self.url, text), status=answer.status) from e


def _error_of(status, text):
    """Make an error of an answer. A page of a proxy becomes an error by its status."""
    try:
        e = json.loads(text)["error"]
        return Error(e["message"], e["kind"], status, e.get("faults"), e.get("request_id", ""))
    except (ValueError, KeyError, TypeError):
        kinds = {401: "unauthenticated", 403: "user_forbidden", 404: "not_found", 429: "rate_limited", 502: "unavailable", 503: "unavailable",
                 504: "unavailable"}
        return Error("the server answers %d" % status, kinds.get(status, "internal"), status)
