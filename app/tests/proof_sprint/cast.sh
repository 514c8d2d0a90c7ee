# Plays every archetype of every item. What it does is told by the first word of the item's name:
#   ok     a file with its test
#   row    the same, and a row in a list that its neighbour changes at the same time
#   moved  the same, after a person has committed a row to the target
#   no     never good enough for the reviewer
#   red    breaks the project's check
#   slow   a check that never ends
#   hang   somebody says nothing; the name ends with the role
#   dear   costs more than there is
cat > /dev/null
sign() { sed -E "s/(VERDICT: [A-Z]+|STATUS: [A-Z_]+)/\1 $ARCHEFLOW_CODE/g"; }

item=$(echo "$ARCHEFLOW_RUN_ID" | cut -d. -f2)
stage={base}/stage
mkdir -p "$stage"

# Nobody plays for an item while somebody else does.
exec 9> "$stage/$item.busy"
flock -n 9 || echo "$item $ARCHEFLOW_ROLE" >> "$stage/twice"

# Waits for what somebody else does, but not for ever.
until_there() {
    tries=0
    while [ ! -e "$1" ] && [ $tries -lt 6000 ]; do
        sleep 0.05
        tries=$((tries + 1))
        echo "waiting for $1" >&2
    done
}

case "$item" in
# Somebody else who is overdue takes the mark away, so it is made again and again.
hang-*-"$ARCHEFLOW_ROLE") while :; do : > "$stage/overdue"; sleep 0.2; done ;;
esac

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
    echo "made" > "src/$item.txt"
    echo "grep -q made src/$item.txt" > "tests/${item}_test.sh"
    case "$item" in
    row-*)
        : > "$stage/$item.here"
        case "$item" in
        *a) until_there "$stage/${item%a}b.here" ;;
        *b) until_there "$stage/${item%b}a.here" ;;
        esac
        ;;
    moved-*)
        : > "$stage/$item.here"
        until_there "$stage/$item.moved"
        ;;
    red-*) : > src/red ;;
    # The watcher sees it and says that it is overdue; from within its sandbox it could not.
    slow-*) echo "while :; do sleep 0.2; done" > "tests/${item}_test.sh" ;;
    dear-*) echo '{"input_tokens": 10, "output_tokens": 10, "cost_usd": 50}' > "$ARCHEFLOW_USAGE_FILE" ;;
    esac
    case "$item" in
    row-* | moved-*)
        echo "$item" >> rows
        LC_ALL=C sort -u -o rows rows
        ;;
    esac
    git add -A && git commit -q -m "Work on $item"
    printf '## Summary\n\nIt is done.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\n'
    ;;
*)
    case "$item" in
    no-*)
        cat << END
VERDICT: REJECTED
FINDINGS: 1

| Location | Severity | Category | Description | Fix | Evidence |
|---|---|---|---|---|---|
| src/$item.txt:1 | CRITICAL | reliability | Never good enough | Do it anew | \`src/$item.txt:1\` \`made\` |

STATUS: DONE
END
        ;;
    *) printf 'VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n' ;;
    esac
    ;;
esac | sign
