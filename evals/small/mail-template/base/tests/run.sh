set -eu
node tests/test_template.js
