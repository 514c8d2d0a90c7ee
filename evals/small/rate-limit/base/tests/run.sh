set -eu
node tests/test_limiter.js
