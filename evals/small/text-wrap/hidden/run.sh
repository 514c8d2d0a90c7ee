set -eu
node hidden/test_long_words.js
