# Plays every archetype. Writes down who was sent, and waits while a file says so.
cat > /dev/null
sign() { sed -E "s/(VERDICT: [A-Z]+|STATUS: [A-Z_]+)/\1 $ARCHEFLOW_CODE/g"; }

item=$(echo "$ARCHEFLOW_RUN_ID" | cut -d. -f2)
echo "$item $ARCHEFLOW_ROLE" >> "{base}/bill"
if [ -e "{base}/hold-$item-$ARCHEFLOW_ROLE" ]; then
    : > "{base}/waits-$item-$ARCHEFLOW_ROLE"
    while [ -e "{base}/hold-$item-$ARCHEFLOW_ROLE" ]; do
        sleep 0.05
        echo "waiting" >&2
    done
fi

case "$ARCHEFLOW_ROLE" in
creator)
    cat << END
## Files
- \`src/$item.txt\`
- \`tests/${item}_test.sh\`
## Alternatives
- Another file: rejected, one is enough.
- A database: rejected, too much.
## Test strategy
- it is there
## Confidence
| Axis | Score |
|---|---|
| Task understanding | 0.9 |
| Solution completeness | 0.9 |
| Risk coverage | 0.9 |
## Risks
- None that matter. Mitigation: none.

STATUS: DONE
END
    ;;
maker)
    mkdir -p src tests
    echo "made" > "src/$item.txt"
    echo "grep -q made src/$item.txt" > "tests/${item}_test.sh"
    git add -A && git commit -q -m "Work on $item"
    printf '## Summary\n\nIt is done.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\n'
    ;;
*)
    printf 'VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n'
    ;;
esac | sign
