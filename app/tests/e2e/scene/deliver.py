"""Delivers webhooks: one POST per subscriber."""

import time
import urllib.request

TIMEOUT = 5


def deliver(url, body, post=None):
    """Sends the body once and says whether it arrived."""
    post = post or send
    try:
        return post(url, body) < 300
    except OSError:
        return False


def send(url, body):
    request = urllib.request.Request(url, data=body, method="POST")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        return answer.status


def deliver_all(subscribers, body, post=None):
    return {url: deliver(url, body, post) for url in subscribers}
