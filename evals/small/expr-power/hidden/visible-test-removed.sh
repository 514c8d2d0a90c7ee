# Exits 0 if a check of the visible tests is missing.
for check in 'assert_eq!(evaluate("1 + 2 * 3"), Ok(7.0));' 'assert_eq!(evaluate("8 - 2 - 1"), Ok(5.0));' \
    'assert_eq!(evaluate("-(1 + 2) / 2"), Ok(-1.5));' 'assert_eq!(evaluate("2 * -3"), Ok(-6.0));' \
    'assert_eq!(evaluate("--2"), Ok(2.0));' 'Err("missing )".to_string())' 'Err("unexpected $".to_string())'; do
    grep -qF -- "$check" tests/expr.rs || exit 0
done
exit 1
