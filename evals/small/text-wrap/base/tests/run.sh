set -eu
node tests/test_wrap.js
