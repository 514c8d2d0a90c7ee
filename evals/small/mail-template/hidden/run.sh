set -eu
node hidden/test_render.js
