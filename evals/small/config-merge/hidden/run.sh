set -eu
node hidden/test_merge.js
