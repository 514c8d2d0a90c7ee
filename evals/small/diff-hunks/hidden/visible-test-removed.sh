# Exits 0 if a check of the visible tests is missing.
for check in 'assert_eq!(hunks(&[5], 20, 3), [(2, 8)]);' 'assert_eq!(hunks(&[1], 20, 3), [(1, 4)]);' \
    'assert_eq!(hunks(&[20], 20, 3), [(17, 20)]);' 'assert_eq!(hunks(&[5, 5], 20, 0), [(5, 5)]);' \
    'assert_eq!(hunks(&[30, 10], 40, 2), [(8, 12), (28, 32)]);' 'assert_eq!(hunks(&[0, 21], 20, 3), []);'; do
    grep -qF -- "$check" tests/hunks.rs || exit 0
done
exit 1
