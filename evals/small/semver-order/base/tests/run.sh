set -eu
node tests/test_semver.js
