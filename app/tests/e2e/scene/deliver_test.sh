#!/bin/sh
set -e
python3 - <<'PY'
import sys
sys.path.insert(0, ".")
import deliver
assert deliver.deliver("http://a", b"x", lambda url, body: 204)
assert not deliver.deliver("http://a", b"x", lambda url, body: 500)
print("2 passed")
PY
