//! Findings in real editors: the configuration for Neovim and the problem matcher for VS Code are those of the manual.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Test, review};
use crate::user::printed;

const ROWS: [&str; 3] = [
    "src/app.txt:2 | CRITICAL | reliability | The second line is wrong: `line two`. | Put it right. | `line two`",
    "src/app.txt:5 | WARNING | quality | The fifth line is long, and the description of what is wrong with it is much longer than a line of a hundred columns, so that it is wrapped. | Cut it. | `line 5`",
    "README.md:1 | INFO | quality | The title says nothing. | Say more. | `# The app`",
];

fn reviewed() -> Test {
    let test = Test::new().play(&review("guardian", "REJECTED", &ROWS));
    let text = test.read("src/app.txt").replace("line 2\n", "line two\n");
    test.file("src/app.txt", text);
    assert_eq!(test.look(&[]).code, 0);
    test
}

/// A block of code in the manual.
fn block(language: &str, with: &str) -> String {
    let page = include_str!("../../../docs/editors.md");
    let blocks = page.split("```").skip(1).step_by(2);
    let mut found = blocks.filter_map(|block| block.strip_prefix(&format!("{language}\n")));
    found.find(|block| block.contains(with)).unwrap_or_else(|| panic!("no {language} with {with}")).to_owned()
}

/// What a person does, and what Neovim shows then, as lines of JSON.
const STEPS: &str = r#"
local out = io.open(os.getenv('SHOWN'), 'w')
local function show(name, value)
  out:write(vim.fn.json_encode({ name, value }) .. '\n')
  out:flush()
end
local function shown()
  local all = {}
  for _, one in ipairs(vim.diagnostic.get(0)) do
    table.insert(all, { one.lnum, one.col, one.end_col, one.severity, one.source, one.message })
  end
  table.sort(all, function(a, b) return a[1] < b[1] end)
  return all
end
local function wait(name, is)
  if not vim.wait(600000, is, 20) then show(name, 'never') vim.cmd('cquit') end
  show(name, shown())
end
wait('opened', function() return #shown() == 2 end)
vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'one 😀', 'two' })
wait('moved', function() return #shown() == 2 and shown()[1][1] == 3 end)
vim.ui.select = function(items, _, choose)
  for at, item in ipairs(items) do
    local action = item.title and item or item[2] or item.action
    if action.title:find(WANTED, 1, true) then return choose(item, at) end
  end
  show('nothing to choose', vim.inspect(items))
  vim.cmd('cquit')
end
vim.ui.input = function(_, done) done('as we agreed') end
local first = vim.api.nvim_get_current_buf()
vim.api.nvim_win_set_cursor(0, { 4, 0 })
WANTED = 'Show evidence'
vim.lsp.buf.code_action()
if not vim.wait(600000, function() return vim.api.nvim_get_current_buf() ~= first end, 20) then vim.cmd('cquit') end
show('evidence', vim.api.nvim_buf_get_lines(0, 0, -1, false))
vim.cmd('close')
WANTED = 'Accept'
vim.lsp.buf.code_action()
wait('accepted', function() return #shown() == 1 end)
vim.cmd('qall!')
"#;

#[test]
#[ignore = "needs neovim; `cargo xtask test browser` installs it"]
fn u_16_findings_are_shown_moved_and_accepted_in_an_editor() {
    let test = reviewed();
    let init = test.write("init.lua", &block("lua", "archeflow.accept"));
    let steps = test.write("steps.lua", STEPS);
    let results = test.base().join("shown.jsonl");
    let program = Path::new(env!("CARGO_BIN_EXE_archeflow")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let output = test
        .command("nvim")
        .args(["--headless", "-n", "-u"])
        .arg(&init)
        .args(["src/app.txt", "-c"])
        .arg(format!("luafile {}", steps.display()))
        .env("PATH", path)
        .env("SHOWN", &results)
        .current_dir(&test.repo)
        .output()
        .unwrap();
    let lines = fs::read_to_string(&results).unwrap_or_default();
    assert!(output.status.success(), "{}\n{lines}", printed(&output));
    let shown: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = shown.iter().filter_map(|one| one[0].as_str()).collect();
    assert_eq!(names, ["opened", "moved", "evidence", "accepted"], "{lines}");
    let places = |at: usize| {
        let all = shown[at][1].as_array().unwrap().iter();
        all.map(|one| (one[0].as_u64().unwrap(), one[1].as_u64().unwrap(), one[2].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(places(0), [(1, 0, 8), (4, 0, 6)]);
    assert_eq!(places(1), [(3, 0, 8), (6, 0, 6)]);
    assert_eq!(places(3), [(6, 0, 6)]);
    let first = &shown[0][1][0];
    assert_eq!((&first[3], &first[4]), (&json!(1), &json!("archeflow")));
    assert!(first[5].as_str().unwrap().starts_with("The second line is wrong"), "{first}");
    assert!(shown[2][1].to_string().contains("The second line is wrong"), "{}", shown[2]);
    let baseline: Value = serde_json::from_str(&test.read(".archeflow/baseline.json")).unwrap();
    assert_eq!(baseline["accepted"][0]["reason"], "as we agreed");
}

/// Tries the patterns of each matcher on consecutive lines, as VS Code does.
const MATCHER: &str = r#"
const [tasks, printed] = process.argv.slice(1).map((name) => require('fs').readFileSync(name, 'utf8'));
const lines = printed.split('\n');
const found = [];
for (const { pattern } of JSON.parse(tasks).tasks[0].problemMatcher) {
  lines.forEach((_, at) => {
    const problem = {};
    const fits = pattern.every((one, n) => {
      const match = new RegExp(one.regexp).exec(lines[at + n] ?? '');
      if (match) for (const key of ['severity', 'code', 'message', 'file', 'line']) if (one[key]) problem[key] = match[one[key]];
      return match;
    });
    if (fits) found.push(problem);
  });
}
console.log(JSON.stringify(found.sort((a, b) => a.severity < b.severity ? -1 : 1)));
"#;

#[test]
#[ignore = "needs node; `cargo xtask test browser` runs it"]
fn u_16_the_problem_matcher_reads_a_review_as_in_an_editor() {
    let test = reviewed();
    let id = test.run_ids().remove(0);
    let outcome = test.run(&["review", "--run", &id]);
    let tasks = test.write("tasks.json", &block("json", "problemMatcher"));
    let printed_list = test.write("printed.txt", &outcome.stdout);
    let output =
        test.command("node").args(["-e", MATCHER, "--"]).args([&tasks, &printed_list]).output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows: Vec<[&str; 4]> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|one| ["severity", "code", "file", "line"].map(|key| one[key].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        rows,
        [
            ["critical", "reliability", "src/app.txt", "2"],
            ["info", "quality", "README.md", "1"],
            ["warning", "quality", "src/app.txt", "5"],
        ],
        "{}\n{found:#}",
        outcome.stdout
    );
}
