set -u
# The zones are given as rules, because the names of zones need files that may be missing.
failed=0
for zone in UTC0 EST5 IST-5:30; do
    TZ=$zone PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=. python3 hidden/test_days.py || {
        echo "failed with TZ=$zone"
        failed=1
    }
done
exit $failed
