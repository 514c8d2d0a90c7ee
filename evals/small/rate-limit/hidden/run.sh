set -eu
node hidden/test_window.js
