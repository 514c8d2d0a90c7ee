set -eu
node tests/test_config.js
