//! Pictures of the program: the demo's live view, and its report and the pages as a browser shows them.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use crate::{live, test};

/// A larger picture would slow down the page.
const LARGEST: u64 = 200_000;

pub(crate) fn make(root: &Path) -> ExitCode {
    match report(root).and_then(|()| live(root)).and_then(|()| pages(root)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask pictures: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The HTML report of the demo's run, as a browser shows its beginning.
fn report(root: &Path) -> Result<(), String> {
    if !test::is_there("chromium") {
        return Err("chromium is not there; install it and try again".to_owned());
    }
    test::through(root, &["cargo", "build", "--release", "--package", "archeflow"], &[])?;
    let folder =
        tempfile::Builder::new().prefix("archeflow-").tempdir().map_err(|error| error.to_string())?;
    let demo = folder.path().join("demo");
    let program = test::built(root, "release", "archeflow");
    let run = output(&program, &["demo", "--quick", "--json", "--dir", &text(&demo)])?;
    let run: serde_json::Value = serde_json::from_str(&run).map_err(|error| error.to_string())?;
    let id = run["run_id"].as_str().ok_or("the demo named no run")?;
    let page = folder.path().join("report.html");
    output(
        &program,
        &["report", id, "--html", "--repo", &text(&demo.join("shop")), "--output", &text(&page)],
    )?;
    let picture = root.join("docs/pictures/report.png");
    shoot(&page, &picture, folder.path())?;
    right_size(&picture)
}

/// The release is there: the report was made with it.
fn live(root: &Path) -> Result<(), String> {
    live::take(&test::built(root, "release", "archeflow"), &root.join("docs/pictures/tui.svg"))
}

/// The pages of `archeflow ui`, with the runs that a test makes.
fn pages(root: &Path) -> Result<(), String> {
    let folder = root.join("docs/pictures");
    let test = "ui_scene::pictures_of_the_pages";
    let words = ["cargo", "test", "-p", "archeflow", "--test", "e2e", "--", "--ignored", "--exact", test];
    test::through(root, &words, &[("ARCHEFLOW_PICTURES", &text(&folder))])?;
    for name in ["ui-inbox", "ui-run", "ui-board", "ui-phone"] {
        right_size(&folder.join(format!("{name}.png")))?;
    }
    Ok(())
}

fn right_size(picture: &Path) -> Result<(), String> {
    let size = std::fs::metadata(picture).map_err(|error| format!("{}: {error}", picture.display()))?.len();
    println!("{}: {size} bytes", picture.display());
    if size > LARGEST { Err(format!("the picture is larger than {LARGEST} bytes")) } else { Ok(()) }
}

fn shoot(page: &Path, picture: &Path, folder: &Path) -> Result<(), String> {
    let flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--window-size=1060,1130",
    ];
    let profile = format!("--user-data-dir={}", text(&folder.join("profile")));
    let to = format!("--screenshot={}", text(picture));
    let address = format!("file://{}", text(page));
    let words: Vec<&str> = flags.into_iter().chain([profile.as_str(), &to, &address]).collect();
    output("chromium", &words).map(drop)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn output(program: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{program} {}` ended with {}", words.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
