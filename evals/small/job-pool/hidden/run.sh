set -eu
node hidden/test_failures.js
