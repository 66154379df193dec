#!/usr/bin/env python3
"""A node of contract v1 (docs/contract.md): it takes submissions by HTTP, and
answers by callback, or by Redis if it was given one. Copy it, and replace work.
Needs nothing but Python 3.9; for Redis, the package redis."""

import argparse, hashlib, hmac, json, random, sys, threading, time
import urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

options = argparse.Namespace(name="node-python", slots=2, redis=None)
running = {}  # attempts by id: as many as slots, each until its answer is recorded
lock = threading.Lock()


class Failure(Exception):
    """What an answer says of a step that failed. retryable: None = not known."""

    def __init__(self, reason, message, retryable=None):
        self.error = {"reason": reason, "message": message}
        if retryable is not None:
            self.error["retryable"] = retryable


class Stopped(Exception):
    """Nobody waits for the attempt any more."""


def work(given, attempt):
    """The toy that your work replaces: it counts the words of a text. It says that
    it is alive, and stops when the attempt does."""
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        raise Failure("bad_input", "there is no text", retryable=False)
    for _ in range(given.get("seconds", 0)):  # how long to take
        attempt.sleep(1)
        attempt.alive()
    if "fail" in given:  # why to fail
        retryable = given.get("retryable")
        raise Failure(str(given["fail"]), "the input asked for it", retryable if isinstance(retryable, bool) else None)
    return {"words": len(given["text"].split()), "sha256": hashlib.sha256(given["text"].encode()).hexdigest()}


class Attempt:
    """One submission at work."""

    def __init__(self, submission):
        self.submission, self.stopped = submission, threading.Event()
        self.told = time.monotonic()  # the last sign of life
        self.deadline = self.told + submission["deadline_ms"] / 1000

    def run(self):
        try:
            doc = self.answer()
            if len(doc) > 1 << 20:
                doc = self.document("error", error=Failure("too_large", "an answer of more than 1 MiB", retryable=False).error)
            self.deliver(doc)
        except Stopped:
            pass
        finally:
            with lock:
                del running[self.submission["attempt"]]

    def answer(self):
        try:
            return self.document("done", output=work(self.submission["input"], self))
        except Failure as e:
            return self.document("error", error=e.error)
        except Stopped:
            raise
        except Exception as e:  # whether trying again helps is not known, and so not said
            return self.document("error", error={"reason": "internal", "message": repr(e)})

    def deliver(self, doc):
        """Sends the same bytes, later and later, until they are recorded, or somebody
        says that they will never be, or the deadline."""
        pause, status = 0, 0
        while status not in (200, 409, 410, 422):
            self.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause or 1, 60)
            status = self.send(doc)
        if status != 200:
            print(f"nobody takes the answer: {status}", file=sys.stderr)

    def alive(self):
        """Tells that the work goes on, three times in the longest silence allowed."""
        if time.monotonic() - self.told >= self.submission.get("silence_ms", 30000) / 3000:
            self.told = time.monotonic()
            if self.send(self.document("progress"), progress=True) in (409, 410, 422):
                raise Stopped

    def sleep(self, seconds):
        if self.stopped.wait(min(seconds, self.deadline - time.monotonic())) or time.monotonic() >= self.deadline:
            raise Stopped

    def document(self, status, **field):
        s = self.submission
        return json.dumps({"v": 1, "job": s["job"], "step": s["step"], "attempt": s["attempt"],
                           "node": options.name, "status": status, **field}, allow_nan=False).encode()

    def send(self, doc, progress=False):
        """Sends a document once; returns the consumer's status: 200 is recorded, 0 is no reply."""
        to = self.submission["answer"]
        try:
            if options.redis and "redis" in to:
                where, limit = ("progress", 10000) if progress else ("stream", None)  # an answer is never cut off
                options.redis.xadd(to["redis"][where], {"ticket": to["redis"]["ticket"], "doc": doc}, maxlen=limit)
                return 200
            signature = hmac.new(to["key"].encode(), doc, "sha256").hexdigest()
            headers = {"Content-Type": "application/json", "Settle-Signature": "v1=" + signature}
            with http.open(urllib.request.Request(to["url"], doc, headers), timeout=10) as reply:
                return reply.status
        except urllib.error.HTTPError as e:
            return e.code
        except Exception as e:  # of whatever library: nobody knows
            print(f"no reply: {e}", file=sys.stderr)
            return 0


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Whoever answers there is not who was to be asked."""

    def redirect_request(self, *_):
        return None


http = urllib.request.build_opener(NoRedirect)


class Node(BaseHTTPRequestHandler):
    def do_POST(self):
        """Accepts with 202, is busy with 429, and refuses for good with 422."""
        try:
            length = int(self.headers["Content-Length"])
            s = json.loads(self.rfile.read(length)) if length <= 8 << 20 else None
            valid = s["v"] == 1 and s["job"] and s["step"] and s["attempt"] and s["deadline_ms"] > 0 and "input" in s
            way = "redis" in s["answer"] and options.redis or s["answer"]["url"].startswith(("http://", "https://")) and s["answer"]["key"]
        except (ValueError, KeyError, TypeError, AttributeError):
            valid = way = None
        if not valid or not way:
            error = {"reason": "malformed", "message": "no submission of contract v1 that can be answered from here"}
            return self.reply(422, json.dumps({"error": error}).encode())
        with lock:
            if s["attempt"] not in running:  # sent twice: once is enough
                if len(running) >= options.slots:
                    return self.reply(429)
                running[s["attempt"]] = attempt = Attempt(s)
                threading.Thread(target=attempt.run, daemon=True).start()
        self.reply(202)

    def do_DELETE(self):
        """Stops an attempt for which nobody waits any more."""
        with lock:
            attempt = running.get(self.path.rsplit("/", 1)[-1])
        if attempt:
            attempt.stopped.set()
        self.reply(204 if attempt else 404)

    def reply(self, status, body=b""):
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "5")
        if body:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--addr", default="127.0.0.1:8080", help="where to listen")
    flags.add_argument("--name", default=options.name, help="the node's name for itself")
    flags.add_argument("--slots", type=int, default=options.slots, help="submissions at once: with so many it is busy")
    flags.add_argument("--redis", help="redis://host:port, to answer by Redis where a submission offers it")
    flags.parse_args(namespace=options)
    if options.redis:
        import redis
        options.redis = redis.Redis.from_url(options.redis, socket_timeout=10)
    host, port = options.addr.rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), Node)
    print("listening on http://%s:%d" % server.server_address, flush=True)
    server.serve_forever()
