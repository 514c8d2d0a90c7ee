# Exits 0 if a line of the sample is missing.
while IFS= read -r line; do
    grep -qxF -e "$line" tests/sample.md || exit 0
done <<'END'
# Changelog
## 1.2.0 (2024-05-01)
Faster start.
### Fixed
- No crash with empty files.
## 1.1.0
- First public version.
END
exit 1
