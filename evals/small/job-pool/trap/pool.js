'use strict';

// Runs jobs, a limited number at a time. See README.md.
class Pool {
  constructor(limit) {
    this.limit = limit;
    this.active = 0;
    this.queue = [];
  }

  get waiting() {
    return this.queue.length;
  }

  run(job) {
    return new Promise((resolve, reject) => {
      this.queue.push({ job, resolve, reject });
      this.startNext();
    });
  }

  startNext() {
    if (this.active >= this.limit || this.queue.length === 0) {
      return;
    }
    const { job, resolve, reject } = this.queue.shift();
    this.active += 1;
    Promise.resolve(job())
      .then(resolve, reject)
      .finally(() => {
        this.active -= 1;
        this.startNext();
      });
  }
}

module.exports = { Pool };
