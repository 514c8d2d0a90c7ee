'use strict';

// Limits the requests of each client. See README.md.
class Limiter {
  constructor({ limit, windowMs, now = Date.now }) {
    this.limit = limit;
    this.windowMs = windowMs;
    this.now = now;
    this.times = new Map();
  }

  recent(key) {
    const start = this.now() - this.windowMs;
    const times = (this.times.get(key) || []).filter((time) => time > start);
    this.times.set(key, times);
    return times;
  }

  allow(key) {
    const times = this.recent(key);
    times.push(this.now());
    return times.length <= this.limit;
  }

  retryAfter(key) {
    const times = this.recent(key);
    if (times.length < this.limit) {
      return 0;
    }
    return times[times.length - this.limit] + this.windowMs - this.now();
  }
}

module.exports = { Limiter };
