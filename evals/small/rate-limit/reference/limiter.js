'use strict';

// Limits the requests of each client. See README.md.
class Limiter {
  constructor({ limit, windowMs, now = Date.now }) {
    this.limit = limit;
    this.windowMs = windowMs;
    this.now = now;
    // Times of the allowed requests that still count, oldest first.
    this.allowed = new Map();
  }

  allow(key) {
    const time = this.now();
    const times = this.counting(key, time);
    if (times.length >= this.limit) {
      return false;
    }
    times.push(time);
    this.allowed.set(key, times);
    return true;
  }

  retryAfter(key) {
    const time = this.now();
    const times = this.counting(key, time);
    return times.length < this.limit ? 0 : times[0] + this.windowMs - time;
  }

  counting(key, time) {
    return (this.allowed.get(key) || []).filter((at) => time - at < this.windowMs);
  }
}

module.exports = { Limiter };
