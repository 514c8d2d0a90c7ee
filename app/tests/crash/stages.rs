//! Other stages: agents that need an answer, agents that linger, a target that turns red after landing.

use std::fs;
use std::path::Path;

use super::scene::Scene;

/// A shell script that plays the scene's play, after `before` had its say. It sees the brief as `$brief`.
pub(crate) fn shell_agent(scene: &Scene, before: &str) -> String {
    let script = scene.base().join("agent.sh");
    // It remembers outside of its sandbox what it has done.
    let before = before.replace("$BASE", &scene.base().display().to_string());
    scene.open_base();
    let text = format!(
        "brief=$(cat)\n{before}\nsaid=$({} __play {} </dev/null); code=$?\n\
         printf '%s\\n' \"$said\" | sed -E \"s/(VERDICT: [A-Z]+|STATUS: [A-Z_]+)/\\1 $ARCHEFLOW_CODE/g\"; exit $code\n",
        quoted(Path::new(crate::user::PROGRAM)),
        quoted(&scene.play)
    );
    fs::write(&script, text).unwrap();
    // The second word makes the play visible in the sandbox.
    format!("cmd:sh {} {}", quoted(&script), quoted(&scene.play))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

/// A Creator that asks until its brief holds the answer.
pub(crate) const ASKS: &str = r#"
if [ "$ARCHEFLOW_ROLE" = creator ]; then
    case $brief in
        *"In Latin"*) ;;
        *) printf '%s\n\n%s\n' "Which language?" "STATUS: NEEDS_CONTEXT $ARCHEFLOW_CODE"; exit 0 ;;
    esac
fi
"#;

/// A Maker that begins, leaves a process of its own session behind, and does not come to an end the first time.
pub(crate) const LINGERS: &str = r#"
if [ "$ARCHEFLOW_ROLE" = maker ] && [ ! -e "$BASE/lingered" ]; then
    t=$(cat /proc/sys/kernel/random/uuid)
    echo "$t" >begun.txt
    git add begun.txt && git commit -q -m "Begin"
    u=$(cat /proc/sys/kernel/random/uuid)
    echo "$u" >loose.txt
    printf '%s\n%s\n' "$t" "$u" >>"$BASE/ledger"
    setsid sleep 300 &
    touch "$BASE/lingered"
    sleep 300
fi
"#;

/// A small other change, in one cycle.
pub(crate) const OTHER: &str = r#"
== creator ==
say <<END
## Architecture

One more file.

## Files

- `other.txt`: new (1 minute)

## Alternatives

- None better.

## Test strategy

- None needed.

## Confidence

| Axis | Score |
|---|---|
| Task understanding | 0.95 |
| Solution completeness | 0.9 |
| Risk coverage | 0.9 |

## Risks

- None. Mitigation: none.

STATUS: DONE
END

== maker ==
write other.txt <<END
other
END
write tests/other.sh <<END
[ -e other.txt ]
END
say <<END
## Summary

Done.

STATUS: DONE
END

== guardian ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END
"#;
