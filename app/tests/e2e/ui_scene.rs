//! A person with a few repositories: one run that stopped by itself, one that waits to land, one that landed, and a sprint
//! under way. Every page of it is looked at in a real browser, and the pictures of the manual are taken here.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::ui::Browser;
use super::ui_browser::{Chromium, LOADED};
use crate::hub::ROOM;
use crate::user::{PROGRAM, TestUser, printed, wait_until};

const DELIVER: &str = include_str!("scene/deliver.py");
const DELIVER_TEST: &str = include_str!("scene/deliver_test.sh");
const WEBHOOKS: &str = include_str!("scene/webhooks.play");
const SPRINT: &str = include_str!("scene/sprint.play");
const SHOP: [(&str, &str); 3] = [
    ("till.sh", include_str!("../../demo/till.sh")),
    ("tests/run.sh", include_str!("../../demo/tests.sh")),
    ("README.md", include_str!("../../demo/README.md")),
];
const DEMO: &str = include_str!("../../demo/demo.play");

/// What the Maker does in a repository of the sprint, and what the Guardian says.
const WORKS: &str = "printf '# checked\\n' >> app.sh; printf '[ \"$(total 4)\" = 4 ]\\n' >> tests/run.sh\n";
const HOLDS: &str = "while [ ! -e \"$1/go\" ]; do sleep 0.1; done\n";
const APPROVES: &str = "printf 'VERDICT: APPROVED\\nFINDINGS: 0\\n\\nSTATUS: DONE\\n'\n";
const REJECTS: &str = "cat <<'END'\nVERDICT: REJECTED\nFINDINGS: 1\n\n| Location | Severity | Category | Description | Fix | Evidence |\n\
    |---|---|---|---|---|---|\n| app.sh:2 | CRITICAL | reliability | Mails with a single dot on a line are cut off there | Double the dot | `echo \"$1\"` |\n\n\
    STATUS: DONE\nEND\n";

const PROJECTS: [(&str, &str, &str); 6] = [
    ("invoices", WORKS, APPROVES),
    ("site", WORKS, APPROVES),
    ("mailer", WORKS, REJECTS),
    ("importer", HOLDS, APPROVES),
    ("search", WORKS, HOLDS),
    ("sessions", HOLDS, APPROVES),
];

const TASKS: [(&str, &str, &str, &str); 8] = [
    ("invoices", "Round totals to whole cents", "P0", "S"),
    ("mailer", "Keep lines with a single dot in plain mails", "P0", "M"),
    ("site", "Show prices with VAT", "P1", "S"),
    ("importer", "Skip rows without an id and say how many", "P1", "M"),
    ("search", "Find words with accents", "P1", "M"),
    ("sessions", "End sessions after a day without use", "P2", "M"),
    ("site", "Write a sitemap when a page is published", "P2", "S"),
    ("invoices", "Number credit notes apart from invoices", "P2", "M"),
];

struct Scene {
    server: Browser,
    sprint: Child,
    user: TestUser,
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Agents that wait go on and end.
        let _ = fs::write(self.user.base().join("go"), "");
        let _ = self.sprint.kill();
        let _ = self.sprint.wait();
    }
}

impl Scene {
    fn make() -> Scene {
        let user = TestUser::new();
        user.configure(&format!("sprint: {{{ROOM}, checkpoint_tasks: 100}}\n"));
        user.open_base();
        let play = |name: &str, text: &str| format!("script:{}", user.write(name, text).display());
        let awake: Vec<&str> = DEMO.lines().filter(|line| !line.starts_with("sleep ")).collect();
        let (webhooks, shop) = (play("webhooks.play", WEBHOOKS), play("shop.play", &awake.join("\n")));
        let agents = play("sprint.play", SPRINT);
        let run = |folder: &str, files: &[(&str, &str)], task: &str, agent: &str, more: &[&str]| {
            let repository = user.base().join(folder);
            user.own_repository(&repository, files);
            let output = archeflow(&user, &repository)
                .args(["run", task, "--agent", agent, "--unattended"])
                .args(more)
                .output()
                .unwrap();
            let ended = output.status.code();
            assert!(ended == Some(0) || ended == Some(10), "{ended:?}: {}", printed(&output));
        };
        let task = "Try a failed webhook delivery again";
        let files = [("deliver.py", DELIVER), ("tests/run.sh", DELIVER_TEST)];
        // Not every machine has its Python where the sandbox shows it.
        let there = "grep -q 'def deliver(' deliver.py";
        run("webhooks", &files, task, &webhooks, &["--workflow", "thorough", "--test-command", there]);
        let tested = ["--test-command", "sh tests/run.sh"];
        let lands = [&tested[..], &["--auto-merge"]].concat();
        run("till", &SHOP, "Give the discount from 100 euros on", &shop, &lands);
        run("shop", &SHOP, "Print the discount on the receipt", &shop, &tested);

        let work = user.base().join("work");
        for (name, maker, guardian) in PROJECTS {
            let files = [
                ("app.sh", "total() {\n    echo \"$1\"\n}\n"),
                ("tests/run.sh", ". ./app.sh\n[ \"$(total 3)\" = 3 ]\n"),
                ("scene/maker.sh", maker),
                ("scene/guardian.sh", guardian),
            ];
            user.own_repository(&work.join(name), &files);
        }
        for (project, task, priority, size) in TASKS {
            let words = ["sprint", "add", project, task, "--priority", priority, "--estimate", size];
            let output = archeflow(&user, &work).args(words).output().unwrap();
            assert!(output.status.success(), "{}", printed(&output));
        }
        let sprint = archeflow(&user, &work)
            .args(["sprint", "run", "--autonomous", "--agent", &agents, "--test-command", "sh tests/run.sh"])
            .args(["--slots", "3", "--budget", "12"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Browser::of(archeflow(&user, &work), &[]);
        Scene { server, sprint, user }
    }

    fn links(&self, page: &str, to: &str) -> Vec<String> {
        let page = self.server.get(page);
        let links = page.split("href=\"").skip(1).map(|part| part.split('"').next().unwrap().to_owned());
        links.filter(|link| link.starts_with(to)).collect()
    }

    /// The board, once three agents wait and everything before them has ended.
    fn board(&self) -> String {
        let list = || self.links("/sprints", "/sprint/");
        wait_until(|| !list().is_empty(), || "no sprint".to_owned());
        let board = list().remove(0);
        let there = || {
            let page = self.server.get(&board);
            let big = |number: &str| page.contains(&format!("<div class=\"big\">{number}"));
            big("2 <small>of 8 tasks") && big("3 <small>of 3 places") && big("1</div>")
        };
        wait_until(there, || self.server.get(&board));
        board
    }

    /// The run in this repository. The board counts a run from the moment its process is started, so the run's own page
    /// may come a little later.
    fn run_in(&self, repository: &str) -> String {
        let find = || {
            let page = self.server.get("/runs");
            let mut listed = page.split("href=\"/runs?repository=").skip(1);
            let of = listed.find(|part| part.contains(&format!("\">{repository}<")))?;
            let key = of.split('"').next().unwrap();
            self.links(&format!("/runs?repository={key}"), "/run/").into_iter().next()
        };
        wait_until(|| find().is_some(), || format!("no run in {repository}: {}", self.server.get("/runs")));
        find().unwrap()
    }
}

fn archeflow(user: &TestUser, folder: &Path) -> Command {
    let mut command = user.command(PROGRAM);
    command.current_dir(folder);
    command
}

/// Every page in light, dark and on a phone, by the rules of axe.
#[test]
#[ignore = "needs chromium and axe; `cargo xtask test` runs it"]
fn u_16_every_page_is_accessible_and_fits_in_a_browser() {
    let axe = std::env::var_os("ARCHEFLOW_AXE").expect("`cargo xtask test browser` sets it");
    let axe = fs::read_to_string(axe).unwrap();
    let scene = Scene::make();
    let board = scene.board();
    let mut pages: Vec<String> =
        ["/", "/runs", "/sprints", "/loops", "/reviews", "/memory", "/scores", "/nowhere"]
            .iter()
            .map(|page| (*page).to_owned())
            .collect();
    let run = scene.run_in("webhooks");
    for part in ["", "/findings", "/agents", "/why", "/costs", "/artifacts", "/journal"] {
        pages.push(format!("{run}{part}"));
    }
    pages.extend([scene.run_in("importer"), format!("{}/center", board.rsplit_once('/').unwrap().0), board]);
    let mut chromium = Chromium::open(&scene.user.base(), &scene.user.home());
    chromium.enter(&scene.server);
    for (width, scheme) in [(1440, "light"), (1440, "dark"), (400, "light")] {
        chromium.look(width, 900, scheme);
        for page in &pages {
            chromium.visit(&scene.server, page);
            check(&mut chromium, &axe, width, &format!("{page} {width} {scheme}"));
        }
        // Asked once more before it lands.
        chromium.visit(&scene.server, &scene.run_in("shop"));
        chromium.eval("document.querySelector('form.decision').requestSubmit()");
        chromium.wait(&format!("{LOADED} && document.querySelector('[aria-label=Confirm]')"));
        check(&mut chromium, &axe, width, &format!("confirm {width} {scheme}"));
    }
    let complaints: Vec<&String> = chromium.complaints.iter().filter(|text| !text.contains("404")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}

fn check(chromium: &mut Chromium, axe: &str, width: u32, page: &str) {
    let wide = chromium.eval("document.documentElement.scrollWidth");
    assert!(wide.as_u64().unwrap() <= u64::from(width), "{page} is {wide} wide");
    let inline = chromium.eval("document.querySelectorAll('b script, script:not([src]), [style]').length");
    assert_eq!(inline, 0, "{page}");
    chromium.eval(axe);
    let found = chromium.eval(
        "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })\
         .then(found => JSON.stringify(found.violations.map(one => [one.id, one.nodes.map(node => node.html)])))",
    );
    assert_eq!(found, "[]", "{page}");
}

/// `cargo xtask pictures` runs this, and says where they go.
#[test]
#[ignore = "takes pictures for the manual"]
fn pictures_of_the_pages() {
    let folder =
        PathBuf::from(std::env::var_os("ARCHEFLOW_PICTURES").expect("`cargo xtask pictures` sets it"));
    let scene = Scene::make();
    let (board, run) = (scene.board(), scene.run_in("webhooks"));
    let mut chromium = Chromium::open(&scene.user.base(), &scene.user.home());
    chromium.enter(&scene.server);
    let decision = format!("/?run={}", run.trim_start_matches("/run/"));
    for (name, page, width, height, scheme, below) in [
        ("ui-inbox", decision.as_str(), 1280, 870, "light", ""),
        ("ui-run", run.as_str(), 1280, 860, "light", "[role=tablist], .tabs"),
        ("ui-board", board.as_str(), 1380, 690, "dark", ""),
        ("ui-phone", decision.as_str(), 400, 860, "light", ".decide"),
    ] {
        chromium.look(width, height, scheme);
        chromium.go(
            &format!("{}{page}", scene.server.base()),
            &format!("{LOADED} && location.href.endsWith('{page}')"),
        );
        if !below.is_empty() {
            chromium.eval(&format!(
                "document.querySelector('{below}').scrollIntoView(); window.scrollBy(0, -60)"
            ));
        }
        let taken = chromium.call("Page.captureScreenshot", json!({ "format": "png" }));
        let picture = fs::File::create(folder.join(format!("{name}.png"))).unwrap();
        let mut decoder =
            Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(picture).spawn().unwrap();
        decoder.stdin.take().unwrap().write_all(taken["data"].as_str().unwrap().as_bytes()).unwrap();
        assert!(decoder.wait().unwrap().success());
    }
}
