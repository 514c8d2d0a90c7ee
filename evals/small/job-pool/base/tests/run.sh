set -eu
node tests/test_pool.js
