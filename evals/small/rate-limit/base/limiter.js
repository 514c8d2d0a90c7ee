'use strict';

// Limits the requests of each client. See README.md.
class Limiter {
  constructor({ limit, windowMs, now = Date.now }) {
    this.limit = limit;
    this.windowMs = windowMs;
    this.now = now;
    this.counts = new Map();
  }

  allow(key) {
    const window = Math.floor(this.now() / this.windowMs);
    const entry = this.counts.get(key);
    if (!entry || entry.window !== window) {
      this.counts.set(key, { window, count: 1 });
      return this.limit > 0;
    }
    entry.count += 1;
    return entry.count <= this.limit;
  }

  retryAfter(key) {
    const time = this.now();
    const window = Math.floor(time / this.windowMs);
    const entry = this.counts.get(key);
    if (!entry || entry.window !== window || entry.count < this.limit) {
      return 0;
    }
    return (window + 1) * this.windowMs - time;
  }
}

module.exports = { Limiter };
