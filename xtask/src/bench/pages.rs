//! The pages of `archeflow ui`: how soon the inbox comes, how long a long journal takes, and what open pages cost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use archeflow_host::log;
use archeflow_host::store::journal::Journal;

use super::memory::high_water_kb;
use super::runs::ManyRuns;
use super::storage::MadeUp;
use super::{Bench, Goal, Row, Rows, best, ms};

type Fault = Box<dyn std::error::Error>;

const REPOSITORIES: usize = 20;
const EACH: usize = 50;
const LONG: u64 = 10_000;
const OPEN: usize = 20;
const TRIES: u32 = 7;
/// A run that is under way writes a line or two in a second.
const LINES: usize = 20;
const PAUSE: Duration = Duration::from_millis(500);

pub(super) fn measure(bench: &Bench) -> Rows {
    let made = ManyRuns::make(bench, REPOSITORIES, EACH)?;
    let events = made.first().join(".archeflow/events");
    let (long, live) = ("2026-02-01-a-long-run-000000", "2026-02-01-a-live-run-000000");
    MadeUp { failures: 0, endless: true }.write(&events, long, LONG)?;
    let server = PageServer::start(&made, bench)?;
    let cold = server.get("/")?.first_byte;
    let warm = best(TRIES, || server.get("/").map(|answer| answer.first_byte))?;
    let floor = best(TRIES, || server.get("/style.css").map(|answer| answer.first_byte))?;
    let inbox = server.get("/")?.text;
    let key = inbox.split("/runs?repository=").skip(1).find_map(|part| {
        let (key, rest) = part.split_once('"')?;
        rest.contains("repository-000").then(|| key.to_owned())
    });
    let key = key.ok_or("the first repository is not in the inbox")?;
    let share = open_pages(&server, &events, &key, live)?;
    let peak = high_water_kb(server.child.id()).ok_or("the server is gone")?;
    let journal =
        best(TRIES, || server.get(&format!("/run/{key}/{long}/journal")).map(|answer| answer.whole))?;
    let after = high_water_kb(server.child.id()).ok_or("the server is gone")?;
    let runs = REPOSITORIES * EACH;
    let row = |what: String, floor: Option<f64>, ours: f64, unit, goal| Row { what, floor, ours, unit, goal };
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let [peak, after] = [peak, after].map(|kb| kb as f64 / 1e3);
    Ok(vec![
        row(format!("inbox, first byte, {runs} runs, cold"), None, ms(cold), "ms", Goal::AtMost(30.0)),
        row(format!("inbox, first byte, {runs} runs"), Some(ms(floor)), ms(warm), "ms", Goal::AtMost(30.0)),
        row(format!("journal of {LONG} lines"), None, ms(journal), "ms", Goal::AtMost(1_000.0)),
        row(format!("{OPEN} pages of a live run"), None, share, "%", Goal::AtMost(2.0)),
        row(format!("memory of their server, {OPEN} pages"), None, peak, "MB", Goal::AtMost(25.0)),
        row(format!("  and after a journal of {LONG} lines"), None, after, "MB", Goal::None),
    ])
}

/// How much of a core the server takes while a run writes and many pages show it.
fn open_pages(server: &PageServer, events: &Path, key: &str, id: &str) -> Result<f64, Fault> {
    let mut lines = Vec::new();
    MadeUp { failures: 0, endless: true }.play_until(200, |entry| lines.push(entry));
    let (before, after) = lines.split_at(lines.len().saturating_sub(LINES));
    let mut journal = Journal::create(events, id)?;
    log::append(&mut journal, before)?;
    let mut streams = Vec::new();
    for _ in 0..OPEN {
        let stream = server.ask(&format!("/events?of=run/{key}/{id}"))?;
        stream.set_nonblocking(true)?;
        streams.push(stream);
    }
    let heard = |streams: &mut Vec<TcpStream>| -> usize {
        let mut bytes = vec![0; 256 * 1024];
        let read = streams.iter_mut().map(|stream| stream.read(&mut bytes).unwrap_or(0));
        read.filter(|got| *got > 0).count()
    };
    while heard(&mut streams) > 0 || streams.is_empty() {
        std::thread::sleep(PAUSE);
    }
    let (begun, used) = (Instant::now(), server.processor_time()?);
    let mut told = 0;
    for line in after {
        log::append(&mut journal, std::slice::from_ref(line))?;
        std::thread::sleep(PAUSE);
        told += heard(&mut streams);
    }
    if told < OPEN {
        return Err("the pages were told nothing".into());
    }
    let used = server.processor_time()?.saturating_sub(used);
    Ok(used.as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0)
}

struct PageServer {
    child: Child,
    port: u16,
    cookie: String,
}

struct PageAnswer {
    first_byte: Duration,
    whole: Duration,
    text: String,
}

impl PageServer {
    fn start(made: &ManyRuns, bench: &Bench) -> Result<PageServer, Fault> {
        let mut command = Command::new(&bench.program);
        command.args(["ui", "--port", "0"]).current_dir(made.first()).env("HOME", made.home());
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stderr.take().ok_or("no output")?).lines();
        let address = lines.map_while(Result::ok).find(|line| line.contains("/in?t="));
        let address = address.ok_or("the server printed no address")?;
        let (place, token) = address.trim().split_once("/in?t=").ok_or("no token")?;
        let port = place.rsplit_once(':').ok_or("no port")?.1.parse()?;
        let mut server = PageServer { child, port, cookie: String::new() };
        let entered = server.get(&format!("/in?t={token}"))?.text;
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).ok_or("no cookie")?;
        server.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(server)
    }

    /// Of all threads, also of those that have ended, to a hundredth of a second.
    fn processor_time(&self) -> Result<Duration, Fault> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let rest = stat.rsplit_once(')').ok_or("no such process")?.1;
        let ticks =
            rest.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    fn ask(&self, path: &str) -> Result<TcpStream, Fault> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let (port, cookie) = (self.port, &self.cookie);
        let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}");
        stream.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes())?;
        Ok(stream)
    }

    fn get(&self, path: &str) -> Result<PageAnswer, Fault> {
        let begun = Instant::now();
        let mut stream = self.ask(path)?;
        let mut bytes = vec![0];
        stream.read_exact(&mut bytes)?;
        let first_byte = begun.elapsed();
        stream.read_to_end(&mut bytes)?;
        let whole = begun.elapsed();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.split(' ').nth(1) != Some("200") {
            return Err(format!("{path}: {}", text.lines().next().unwrap_or_default()).into());
        }
        Ok(PageAnswer { first_byte, whole, text })
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
