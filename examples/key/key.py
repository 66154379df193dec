#!/usr/bin/env python3
"""A producer for the stand-alone mailbox (docs/contract.md, "By Redis, as a key"):
it reads a task from its standard input, works, and leaves the answer under a key.
What a task looks like is between you and your consumer; here it is

  {"key": "settle:answer:video-7.a1b2c3", "lifetime_s": 7200, "job": "video-7", "step": "count", "attempt": "a1b2c3", "text": "…"}

Needs the package redis. REDIS_URL: redis://host:port."""

import json, os, sys, time

import redis


def work(task):
    if not isinstance(task.get("text"), str):
        return {"status": "error", "error": {"reason": "bad_input", "message": "there is no text", "retryable": False}}
    return {"status": "done", "output": {"words": len(task["text"].split())}}


def leave(server, key, answer, lifetime):
    """Writes first, then nudges; again, later and later, until it is written or its
    lifetime would be over."""
    pause, end = 1, time.monotonic() + lifetime
    while True:
        try:
            server.set(key, answer, ex=lifetime)
            break
        except redis.RedisError as e:
            print(f"not written: {e}", file=sys.stderr)
        if time.monotonic() + pause > end:
            sys.exit(1)
        time.sleep(pause)
        pause = min(2 * pause, 60)
    try:
        server.publish("settle:nudge", key)
    except redis.RedisError:
        pass  # a nudge may be lost


if __name__ == "__main__":
    task = json.load(sys.stdin)
    names = {"v": 1, "job": task["job"], "step": task["step"], "attempt": task["attempt"], "node": "key-python"}
    server = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://127.0.0.1:6379"), socket_timeout=10)
    leave(server, task["key"], json.dumps({**names, **work(task)}), task["lifetime_s"])
