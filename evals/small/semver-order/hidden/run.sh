set -eu
node hidden/test_order.js
