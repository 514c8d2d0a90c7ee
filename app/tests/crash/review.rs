//! A review is killed wherever a run can be, resumed, and comes to the same list; the user's things stay as they are.

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use super::audit::{self, Users};
use super::proof::{sweep, tell};
use super::scene::{Ended, Scene};
use crate::user::as_strs;

/// Two reviewers side by side, one with a reproduction, over two parts.
const PLAY: &str = r#"
== guardian ==
say <<END
VERDICT: REJECTED
FINDINGS: 1

| Location | Severity | Category | Description | Fix | Evidence |
|---|---|---|---|---|---|
| keep.txt:1 | WARNING | quality | The line says what it is not. | Say what it is. | `modified, not staged` |

## Reproductions

### Finding 1 (regression)

```sh
grep -q committed keep.txt
```

STATUS: DONE
END

== sage ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END
"#;

const CONFIG: &str = "review:\n  part_bytes: 8192\n";

fn scene() -> Scene {
    let scene = Scene::new();
    fs::write(&scene.play, PLAY).unwrap();
    scene.configure(CONFIG);
    let line = |n: usize| format!("{n} and so on and so forth until it is long enough\n");
    fs::write(scene.repo().join("long.txt"), (0..200).map(line).collect::<String>()).unwrap();
    scene
}

fn args(scene: &Scene) -> Vec<String> {
    let agent = format!("script:{}", scene.play.display());
    let args = ["review", "--reviewers", "guardian,sage", "--verify", "--unattended", "--agent", &agent];
    args.map(str::to_owned).to_vec()
}

fn review(scene: &Scene, failpoint: Option<&str>) -> Ended {
    let args = args(scene);
    scene.call(&as_strs(&args), failpoint)
}

struct Golden {
    decisions: Vec<String>,
    result: serde_json::Value,
    places: BTreeMap<String, u64>,
}

fn result(scene: &Scene) -> Result<serde_json::Value, String> {
    let ended = scene.call(&["review", "--run", &scene.id(), "--format", "json"], None);
    let mut result: serde_json::Value =
        serde_json::from_str(&ended.said).map_err(|error| format!("{error}: {}", ended.said))?;
    // Each scene is another repository with other commits.
    for key in ["base", "commit", "reviewers"] {
        if let Some(object) = result.as_object_mut() {
            object.remove(key);
        }
    }
    Ok(result)
}

fn golden() -> &'static Golden {
    static GOLDEN: OnceLock<Golden> = OnceLock::new();
    GOLDEN.get_or_init(|| {
        let scene = scene();
        let before = Users::look(&scene.repo());
        let args = args(&scene);
        let args = as_strs(&args);
        let (ended, places) = scene.traced(scene.command(&args));
        assert_eq!(ended.code, Some(0), "{}", ended.said);
        let entries = audit::journal(&scene.journal()).unwrap();
        audit::users_work(&scene.repo(), &before, 0).unwrap();
        Golden { decisions: audit::decisions(&entries), result: result(&scene).unwrap(), places }
    })
}

fn kill_at(place: &str) -> Result<bool, String> {
    let golden = golden();
    let scene = scene();
    let before = Users::look(&scene.repo());
    let ended = review(&scene, Some(place));
    if ended.killed {
        let again = scene.resume(None);
        let over = again.code == Some(0) || again.said.contains("the run has ended (reviewed)");
        if !over {
            return Err(format!("{place}: resuming ended with {:?}: {}", again.code, again.said));
        }
    }
    let entries = audit::journal(&scene.journal())?;
    audit::same_decisions(&golden.decisions, &entries).map_err(|what| format!("{place}: {what}"))?;
    audit::ends(&entries, 1)?;
    audit::users_work(&scene.repo(), &before, 0)?;
    audit::no_process(&entries)?;
    audit::listed(&scene.events(), &scene.id(), "reviewed")?;
    let found = result(&scene)?;
    if found != golden.result {
        return Err(format!("{place}: another result:\n{found:#}\nnot\n{:#}", golden.result));
    }
    Ok(ended.killed)
}

#[test]
fn m_a1_m_a2_a_review_killed_anywhere_comes_to_the_same_list() {
    let golden = golden();
    let points: Vec<String> = golden
        .places
        .iter()
        .flat_map(|(place, times)| (1..=*times).map(move |n| format!("{place}:{n}")))
        .collect();
    let killed = sweep(&points, |point| kill_at(point));
    tell(&format!("a review: {killed} kill points"));
    assert_eq!(killed, points.len());
}
