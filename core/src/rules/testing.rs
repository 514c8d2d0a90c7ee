//! How much a text tests, line by line, and where tests are (D-07, R-07). Frameworks differ in how a case, an assertion and a case
//! that does not run are written; these are the marks of the common ones.

const CASES: [&str; 24] = [
    "#[test]",
    "#[tokio::test]",
    "#[rstest",
    "#[test_case",
    "def test",
    "func Test",
    "func test",
    "it(",
    "it \"",
    "it '",
    "test(",
    "test \"",
    "specify ",
    "scenario ",
    "@Test",
    "@ParameterizedTest",
    "[Fact]",
    "[Theory]",
    "[Test]",
    "[TestMethod]",
    "TEST(",
    "TEST_F(",
    "TEST_CASE(",
    "public function test",
];
const ASSERTS: [&str; 13] = [
    "assert",
    "Assert.",
    "expect(",
    "require.",
    "should",
    "t.Error",
    "t.Fatal",
    "EXPECT_",
    "ASSERT_",
    "XCTAssert",
    "REQUIRE(",
    "CHECK(",
    "raise unless",
];
/// They hold whatever is tested.
const EMPTY: [&str; 11] = [
    "assertTrue(True)",
    "assertTrue(true)",
    "assertTrue(1)",
    "assert!(true)",
    "assert(true)",
    "expect(true).toBe(true)",
    "expect(true).toBeTruthy()",
    "expect(1).toBe(1)",
    "EXPECT_TRUE(true)",
    "ASSERT_TRUE(true)",
    "XCTAssertTrue(true)",
];
/// A case is skipped, expected to fail, or left out because others are to run alone.
const SKIPS: [&str; 35] = [
    "#[ignore",
    ".skip(",
    ".only(",
    ".todo(",
    ".failing(",
    "pytest.skip",
    "mark.skip",
    "mark.xfail",
    "pytest.xfail",
    "unittest.skip",
    "expectedFailure",
    "SkipTest",
    "skipTest(",
    "__test__ = False",
    "collect_ignore",
    "def load_tests",
    "pytest_collection_modifyitems",
    "xit(",
    "xit \"",
    "xit '",
    "fit(",
    "xdescribe",
    "fdescribe",
    "xtest(",
    "pending",
    "t.Skip",
    "@Disabled",
    "@Ignore",
    "[Ignore",
    "Skip = \"",
    "DISABLED_",
    "GTEST_SKIP",
    "XCTSkip",
    "markTestSkipped",
    "markTestIncomplete",
];
/// The same where it begins a line: a case that ends, or is passed over, before it tests anything.
const ENDS: [&str; 4] = ["if 0:", "if False:", "if (false)", "if false {"];

/// How much a text tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strength {
    pub cases: u32,
    pub asserts: u32,
    pub skips: u32,
    /// Lines that do anything at all.
    pub does: u32,
    /// Lines that end a script early or pass over a failure.
    pub escapes: u32,
    /// A checksum of the lines that say what a tool runs as the tests: `"test": "jest"`.
    pub named: u64,
}

impl Strength {
    /// Something in it can be counted as a test.
    pub(super) fn has_tests(self) -> bool {
        self.cases + self.asserts + self.skips > 0
    }

    /// Cases that are not skipped.
    pub(super) fn runs(self) -> u32 {
        self.cases.saturating_sub(self.skips)
    }

    #[must_use]
    pub fn plus(self, other: Strength) -> Strength {
        Strength {
            cases: self.cases.saturating_add(other.cases),
            asserts: self.asserts.saturating_add(other.asserts),
            skips: self.skips.saturating_add(other.skips),
            does: self.does.saturating_add(other.does),
            escapes: self.escapes.saturating_add(other.escapes),
            named: self.named.wrapping_add(other.named),
        }
    }
}

const ESCAPES: [&str; 10] = [
    "exit 0",
    "exit;",
    "return 0",
    "trap ",
    "set +e",
    "|| true",
    "|| :",
    "exit(0)",
    "sys.exit()",
    "os._exit(",
];

/// Of a whole text.
pub fn strength(text: &str) -> Strength {
    text.lines().fold(Strength::default(), |sum, line| sum.plus(strength_of_line(line)))
}

/// Of a line of this file. Beside the code that it tests, only what is a test by its own mark counts.
pub fn strength_in(path: &str, line: &str) -> Strength {
    let strength = Strength { named: names_tests(path, line), ..strength_of_line(line) };
    if is_test_path(path) || !has_tests_inside(path) {
        return strength;
    }
    let skips = u32::from(line.trim_start().starts_with("#[ignore"));
    Strength { asserts: 0, does: 0, escapes: 0, skips, ..strength }
}

/// Whole-line comments do not count: commenting a test out is taking it out.
pub fn strength_of_line(line: &str) -> Strength {
    let line = line.trim_start();
    if line.starts_with("//") || (line.starts_with('#') && !line.starts_with("#[")) {
        return Strength::default();
    }
    // What only prints does not test: `echo 1 passed`.
    let prints = ["echo ", "printf ", "print("].iter().any(|start| line.starts_with(start))
        && !line.contains(['|', '>', ';', '&', '$']);
    let idle = prints
        || is_empty_function(line)
        || matches!(line.trim_end(), "" | "exit 0" | "exit" | "true" | ":" | "set -e" | "pass" | "return 0");
    let ends =
        matches!(line.trim_end(), "return" | "return;") || ENDS.iter().any(|start| line.starts_with(start));
    Strength {
        cases: count(line, &CASES),
        asserts: if is_empty(line) { 0 } else { count(line, &ASSERTS) },
        skips: count(line, &SKIPS).max(u32::from(ends)),
        does: u32::from(!idle),
        escapes: u32::from(ESCAPES.iter().any(|mark| line.contains(mark)) || line.trim_end() == "exit"),
        named: 0,
    }
}

/// A function of a shell script that does nothing: `check() { :; }`.
fn is_empty_function(line: &str) -> bool {
    let body = line.split_once("()").and_then(|(_, rest)| rest.trim().strip_prefix('{')?.strip_suffix('}'));
    body.is_some_and(|body| {
        matches!(body.trim().trim_end_matches(';').trim_end(), "" | ":" | "true" | "return 0")
    })
}

/// The checksum of a line that says what `npm test` runs; nothing in other files.
fn names_tests(path: &str, line: &str) -> u64 {
    let is_named = path.trim_matches('"').ends_with("package.json")
        && ["\"test\"", "\"test:", "\"pretest", "\"posttest"].iter().any(|key| line.contains(key));
    if !is_named {
        return 0;
    }
    line.trim()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An assertion that holds whatever is tested.
fn is_empty(line: &str) -> bool {
    let bare = ["assert True", "assert 1"].iter().find_map(|mark| line.strip_prefix(mark));
    bare.is_some_and(|rest| rest.trim_start().is_empty() || rest.trim_start().starts_with([',', ';', '#']))
        || EMPTY.iter().any(|mark| line.contains(mark))
}

/// How often the mark that is there most often is in a line; some marks are parts of others.
fn count(line: &str, marks: &[&str]) -> u32 {
    marks.iter().map(|mark| marked(line, mark)).max().unwrap_or(0)
}

/// How often a mark is in a line, not as the end of a longer word: `wait(` is no `it(`.
fn marked(line: &str, mark: &str) -> u32 {
    let word = mark.starts_with(|c: char| c.is_ascii_alphanumeric());
    let begins = |(at, _): &(usize, &str)| {
        let before = line.get(..*at).and_then(|before| before.chars().next_back());
        !word || before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    };
    u32::try_from(line.match_indices(mark).filter(begins).count()).unwrap_or(u32::MAX)
}

/// A path that tests live at.
pub fn is_test_path(path: &str) -> bool {
    let path = path.trim_matches('"');
    if is_camel_test(path.rsplit('/').next().unwrap_or_default()) {
        return true;
    }
    let path = path.to_lowercase();
    let mut parts: Vec<&str> = path.split('/').collect();
    let name = parts.pop().unwrap_or_default();
    if parts.iter().any(|part| matches!(*part, "test" | "tests" | "__tests__" | "spec" | "specs" | "testing"))
    {
        return true;
    }
    let stem = name.split('.').next().unwrap_or_default();
    name.starts_with("test_")
        || name.starts_with("test.")
        || stem.ends_with("_test")
        || stem.ends_with("_tests")
        || stem.ends_with("_spec")
        || stem.ends_with("-test")
        || name.contains(".test.")
        || name.contains(".spec.")
        || matches!(stem, "tests" | "test")
}

/// `FooTest.java`, `FooTests.cs`: only in languages that name tests so, and `Latest.java` is none.
fn is_camel_test(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let in_such_a_language = matches!(extension, "java" | "kt" | "cs" | "swift" | "scala" | "php");
    in_such_a_language && (stem.ends_with("Test") || stem.ends_with("Tests"))
}

/// What pytest reads to know which tests there are.
pub fn steers_collection(path: &str) -> bool {
    path.trim_matches('"').rsplit('/').next() == Some("conftest.py")
}

/// A file of a language whose unit tests are beside the code.
pub fn has_tests_inside(path: &str) -> bool {
    path.trim_matches('"').ends_with(".rs")
}

/// An added line that is a test wherever it is, such as a unit test beside the code.
pub fn adds_a_test(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[test]") || line.starts_with("#[tokio::test]") || line.starts_with(">>> ")
}
