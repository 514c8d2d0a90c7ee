//! How much a text tests, line by line, and where tests are (D-07, R-07). Frameworks differ in how a case, an assertion and a case
//! that does not run are written; these are the marks of the common ones.

const CASES: [&str; 38] = [
    "#[test]",
    "#[tokio::test",
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
    "::test]",
    "func Fuzz",
    "func Example",
    "it.each",
    "test.each",
    "it.concurrent",
    "test.concurrent",
    "@RepeatedTest",
    "[TestCase",
    "#[Test]",
    "TEST_P(",
    "TYPED_TEST(",
    "BOOST_AUTO_TEST_CASE(",
    "RUN_TEST(",
];
const ASSERTS: [&str; 19] = [
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
    "is_expected",
    ".Should(",
    "TEST_ASSERT",
    "BOOST_CHECK",
    "BOOST_REQUIRE",
    "#require(",
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
const SKIPS: [&str; 69] = [
    "#[ignore",
    "it.skip",
    "test.skip",
    "describe.skip",
    "suite.skip",
    "context.skip",
    "concurrent.skip",
    "this.skip(",
    "t.skip(",
    "->skip(",
    "it.only",
    "test.only",
    "describe.only",
    "suite.only",
    "context.only",
    "concurrent.only",
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
    "#[should_panic",
    "#[cfg(any())]",
    ".skipIf(",
    ".runIf(",
    ".fails(",
    "importorskip",
    "skip \"",
    "skip '",
    ", :skip",
    "tag :skip",
    "skip: true",
    "todo: true",
    "xcontext",
    "fcontext",
    "@EnabledIf",
    "enabled=false",
    "enabled = false",
    "assumeTrue(",
    "assumeFalse(",
    "\"[.]\"",
    ".disabled(",
];
/// The same where it begins a line: a case that ends, or is passed over, before it tests anything.
const ENDS: [&str; 8] =
    ["if 0:", "if False:", "if (false)", "if false {", "#if 0", "#if false", "#define NDEBUG", "//go:build"];

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

/// Of a whole file.
pub fn strength_in(path: &str, text: &str) -> Strength {
    let mut reader = StrengthReader::new(path);
    text.lines().for_each(|line| reader.line(line));
    reader.sum
}

/// Reads a file line by line.
#[derive(Debug)]
pub struct StrengthReader<'a> {
    path: &'a str,
    /// What ends the comment of several lines that is being read.
    comment: Option<&'static str>,
    pub sum: Strength,
}

impl<'a> StrengthReader<'a> {
    pub fn new(path: &'a str) -> StrengthReader<'a> {
        StrengthReader { path: path.trim_matches('"'), comment: None, sum: Strength::default() }
    }

    pub fn line(&mut self, line: &str) {
        if !self.is_comment(line) {
            self.sum = self.sum.plus(self.of(line));
        }
    }

    /// Beside the code that it tests, only what is a test by its own mark counts, and assertions behind the first of them.
    fn of(&self, line: &str) -> Strength {
        let strength = Strength { named: names_tests(self.path, line), ..strength_of_line(line) };
        if is_test_path(self.path) || !has_tests_inside(self.path) {
            return strength;
        }
        let own = ["#[ignore", "#[should_panic", "#[cfg(any())]"];
        let skips = u32::from(own.iter().any(|mark| line.trim_start().starts_with(mark)));
        let asserts = if self.sum.cases > 0 { strength.asserts } else { 0 };
        Strength { asserts, does: 0, escapes: 0, skips, ..strength }
    }

    /// Whether a line is of a comment that began before it, or begins one that does not end in it.
    fn is_comment(&mut self, line: &str) -> bool {
        if let Some(end) = self.comment {
            self.comment = Some(end).filter(|end| !line.contains(end));
            return true;
        }
        let line = line.trim_start();
        let is_python = self.path.ends_with(".py");
        let marks =
            [("/*", "*/", is_like_c(self.path)), ("\"\"\"", "\"\"\"", is_python), ("'''", "'''", is_python)];
        let opens = |(start, end, known): &(&str, &'static str, bool)| {
            let rest = line.strip_prefix(start).filter(|_| *known)?;
            (!rest.contains(end)).then_some(*end)
        };
        self.comment = marks.iter().find_map(opens);
        self.comment.is_some()
    }
}

/// A language in which `/*` begins a comment. In a shell it begins a pattern.
fn is_like_c(path: &str) -> bool {
    const ENDINGS: [&str; 22] = [
        "rs", "c", "h", "cc", "cpp", "cxx", "hpp", "cs", "java", "kt", "kts", "scala", "swift", "go", "js",
        "mjs", "cjs", "jsx", "ts", "tsx", "dart", "php",
    ];
    path.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

/// Whole-line comments do not count: commenting a test out is taking it out.
pub fn strength_of_line(line: &str) -> Strength {
    let line = line.trim_start();
    // They look like comments of other languages.
    if ["#if ", "#define NDEBUG", "//go:build"].iter().any(|mark| line.starts_with(mark)) {
        let ends = ENDS.iter().any(|mark| line.starts_with(mark));
        return Strength { skips: u32::from(ends), ..Strength::default() };
    }
    let is_macro = ["#[", "#expect(", "#require("].iter().any(|mark| line.starts_with(mark));
    if line.starts_with("//") || (line.starts_with('#') && !is_macro) {
        return Strength::default();
    }
    // What only prints does not test: `echo 1 passed`.
    let prints = ["echo ", "printf ", "print("].iter().any(|start| line.starts_with(start))
        && !line.contains(['|', '>', ';', '&', '$']);
    let idle = prints
        || is_empty_function(line)
        || matches!(line.trim_end(), "" | "exit 0" | "exit" | "true" | ":" | "set -e" | "pass" | "return 0");
    let ends = matches!(line.trim_end(), "return" | "return;" | "skip")
        || ENDS.iter().any(|start| line.starts_with(start));
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

/// Keys with which a file says, among other things, what is run as the tests.
pub(super) fn keys_of_tests(path: &str) -> &'static [&'static str] {
    match path.rsplit('/').next().unwrap_or_default() {
        "package.json" => &["\"test\"", "\"test:", "\"pretest", "\"posttest"],
        "pyproject.toml" | "setup.cfg" => {
            &["testpaths", "addopts", "python_files", "python_classes", "python_functions", "norecursedirs"]
        }
        _ => &[],
    }
}

/// The checksum of a line that says what `npm test` runs, or what pytest collects; nothing in other files.
fn names_tests(path: &str, line: &str) -> u64 {
    if !keys_of_tests(path).iter().any(|key| line.contains(key)) {
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
        || compares_constants(line)
}

/// An assertion that names nothing but constants: `assertEqual(3, 3)`. One that goes on in the next line names what it tests there.
fn compares_constants(line: &str) -> bool {
    let begins = ASSERTS.iter().filter_map(|mark| line.find(mark)).min();
    let line = begins.and_then(|at| line.get(at..)).unwrap_or(line);
    let (open, closed) = (line.matches('(').count(), line.matches(')').count());
    if open > closed || line.replace("$this", "").contains('$') || line.contains("#{") {
        return false;
    }
    // Every other part is within quotation marks.
    let bare: String = line.split(['"', '\'']).step_by(2).collect::<Vec<_>>().join(" 0 ");
    let words = || bare.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let is_constant = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit()) || ["true", "True", "false", "False"].contains(&word)
    };
    let is_frame = |word: &str| {
        [
            "self", "this", "t", "not", "is", "in", "and", "or", "eq", "to", "equal", "ok", "require",
            "public", "static",
        ]
        .contains(&word)
            || [
                "assert",
                "Assert",
                "expect",
                "EXPECT_",
                "ASSERT_",
                "XCTAssert",
                "REQUIRE",
                "CHECK",
                "TEST_ASSERT",
            ]
            .iter()
            .any(|start| word.starts_with(start))
            || [
                "toBe",
                "toEqual",
                "toStrictEqual",
                "strictEqual",
                "deepEqual",
                "Equal",
                "AreEqual",
                "True",
                "IsTrue",
            ]
            .contains(&word)
    };
    words().any(is_constant) && words().all(|word| is_constant(word) || is_frame(word))
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
