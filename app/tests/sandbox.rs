//! S-12: what a process in the sandbox can't do, and what it must still be able to do, against the real `bwrap` and the
//! real kernel.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use archeflow_host::platform::children;
use archeflow_host::proc::{self, Cause, Job, JobEnd, JobLimits, Sink, Watch};
use archeflow_host::sandbox::proxy::{HostList, Proxy};
use archeflow_host::sandbox::{
    ClientNeeds, LocalPort, PolicyMount, PrivateFolders, ProxyAccess, Sandbox, SandboxChoice, SandboxFacts,
    SandboxLevel, SandboxLimits, SandboxNetwork, SandboxPolicy, probe,
};

/// A user's repository, things of the user's that are nobody's business, and a working copy.
struct Scene {
    folder: tempfile::TempDir,
    private: PrivateFolders,
    choice: SandboxChoice,
    /// Variables of the user's, instead of those that this process has.
    variables: Vec<(OsString, OsString)>,
}

impl Scene {
    fn new() -> io::Result<Scene> {
        Scene::in_folder(tempfile::tempdir()?)
    }

    fn in_folder(folder: tempfile::TempDir) -> io::Result<Scene> {
        let at = |name: &str| folder.path().join(name);
        let private = PrivateFolders { home: at("private/home"), tmp: at("private/tmp") };
        for name in ["private/home", "private/tmp", "user", "victim/.ssh", "tree"] {
            fs::create_dir_all(at(name))?;
        }
        fs::write(at("victim/.ssh/id_rsa"), "precious\n")?;
        git(&at("user"), &["init", "-q"]);
        fs::write(at("user/a"), "a\n")?;
        git(&at("user"), &["add", "a"]);
        git(&at("user"), &["commit", "-qm", "first"]);
        git(&at("tree"), &["init", "-q"]);
        let objects = at("user/.git/objects");
        fs::write(at("tree/.git/objects/info/alternates"), format!("{}\n", objects.display()))?;
        let head = fs::read_to_string(at("user/.git/refs/heads/main"))?;
        git(&at("tree"), &["update-ref", "HEAD", head.trim()]);
        git(&at("tree"), &["reset", "-q", "--hard"]);
        Ok(Scene { folder, private, choice: SandboxChoice::default(), variables: Vec::new() })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn policy(&self, make: impl Fn(SandboxFacts<'_>, &Path) -> SandboxPolicy) -> SandboxPolicy {
        let env: Vec<(OsString, OsString)> = std::env::vars_os().chain(self.variables.clone()).collect();
        let (objects, checkout) = ([self.at("user/.git/objects")], self.at("user"));
        let facts = SandboxFacts {
            env: &env,
            private: &self.private,
            objects: &objects,
            checkout: &checkout,
            choice: &self.choice,
        };
        make(facts, &self.at("tree"))
    }

    fn job(&self, level: &SandboxLevel, policy: SandboxPolicy, script: &str) -> Job {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let variables = [
            ("PATH".into(), path),
            ("USERS".into(), self.at("user").into_os_string()),
            ("VICTIM".into(), self.at("victim").into_os_string()),
            ("TREE".into(), self.at("tree").into_os_string()),
            ("OUTER".into(), std::process::id().to_string().into()),
            ("GIT_AUTHOR_NAME".into(), "m".into()),
            ("GIT_AUTHOR_EMAIL".into(), "m@m".into()),
            ("GIT_COMMITTER_NAME".into(), "m".into()),
            ("GIT_COMMITTER_EMAIL".into(), "m@m".into()),
        ];
        Job {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), format!("exec 2>&1\n{script}").into()],
            env: variables.into(),
            cwd: self.at("tree"),
            stdin: Vec::new(),
            stdout: Sink::memory(),
            stderr: Sink::memory(),
            limits: JobLimits { total: Duration::from_secs(120), ..JobLimits::default() },
            tag: format!("sandbox-test-{}-{}", std::process::id(), self.folder.path().display()),
            sandbox: Some(Sandbox { level: level.clone(), policy, me: me(), decoys: Vec::new() }),
        }
    }

    fn run(&self, level: &SandboxLevel, policy: SandboxPolicy, script: &str) -> JobEnd {
        proc::run(self.job(level, policy, script), &Watch::new(), &mut |_, _| {})
    }
}

fn git(at: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "init.defaultBranch=main", "-c", "user.name=u", "-c", "user.email=u@u"]);
    command.args(args).current_dir(at).env("GIT_CONFIG_GLOBAL", "/dev/null");
    // Through the registry: what is not in it is swept away as somebody's leftover.
    let done = children::spawn(&mut command).and_then(|mut child| children::wait(&mut child));
    assert!(done.is_ok_and(|status| status.success()), "git {args:?}");
}

/// The program beside these tests, where they were copied for another user (`cargo xtask test user`).
fn me() -> PathBuf {
    let beside = std::env::current_exe().map(|tests| tests.with_file_name("archeflow"));
    beside.ok().filter(|program| program.is_file()).unwrap_or_else(|| env!("CARGO_BIN_EXE_archeflow").into())
}

/// The suite installs bubblewrap, and runs where it works.
fn bwrap() -> SandboxLevel {
    proc::become_subreaper();
    let level = probe(&me());
    assert!(matches!(level, SandboxLevel::Bubblewrap { .. }), "{}", level.line());
    level
}

fn landlock() -> SandboxLevel {
    proc::become_subreaper();
    let level = archeflow_host::sandbox::probe::find(&me(), &OsString::new());
    assert!(matches!(level, SandboxLevel::Landlock { .. }), "{}", level.line());
    level
}

fn said(ended: &JobEnd) -> String {
    String::from_utf8_lossy(&ended.stdout.bytes).into_owned() + &String::from_utf8_lossy(&ended.stderr.bytes)
}

/// What must fail at both levels, and leave everything as it was.
const STOPPED: [(&str, &str); 14] = [
    ("changing a setting of the kernel", ": > /proc/sys/kernel/panic"),
    ("reading the user's keys", "cat $VICTIM/.ssh/id_rsa"),
    ("listing what lies beside", "ls $VICTIM"),
    ("writing the user's checkout", "echo x > $USERS/a"),
    ("making a file in the user's checkout", "echo x > $USERS/new"),
    ("writing the user's git configuration", "echo x >> $USERS/.git/config"),
    ("writing the user's objects", "echo x > $USERS/.git/objects/x"),
    ("removing what is outside", "rm $VICTIM/.ssh/id_rsa"),
    ("killing this program", "kill -0 $OUTER"),
    ("limiting this program", "prlimit --pid $OUTER --core=0:0"),
    ("reading this program's environment", "cat /proc/$OUTER/environ"),
    ("mounting", "mount -t tmpfs none /mnt"),
    ("writing the system", "echo x > /usr/x"),
    ("writing the toolchains", "touch $(dirname $(command -v cargo))/x"),
];

/// What must fail where there are namespaces.
const STOPPED_BY_NAMESPACES: [(&str, &str); 6] = [
    ("seeing other processes", "test $(ls -d /proc/[0-9]* | wc -l) -gt 6"),
    ("changing permissions outside", "chmod 777 $VICTIM/.ssh/id_rsa"),
    ("a user namespace", "unshare -Ur true"),
    ("writing beside the system", "echo x > /x"),
    ("the keys of the session", "keyctl show"),
    ("the user's home", "ls ~root/.ssh"),
];

/// What must work at both levels.
const WORKING: [(&str, &str); 8] = [
    ("git through alternates", "git log -1 --format=%s | grep first"),
    ("git commits", "echo b > b && git add b && git commit -qm second && git fsck"),
    ("a home of its own", "echo x > ~/x && test $HOME != $VICTIM"),
    ("a temporary folder of its own", "f=$(mktemp) && echo x > $f"),
    ("processes", "sh -c 'sleep 0 & wait'"),
    ("the list of its own processes", "cat /proc/self/status"),
    ("devices", "head -c 8 /dev/urandom > /dev/null"),
    ("git in a folder of its own", "mkdir inner && cd inner && git init -q && git config a.b c"),
];

fn holds(level: &SandboxLevel, stopped: &[(&str, &str)], working: &[(&str, &str)]) -> io::Result<()> {
    for (is_stopped, rows) in [(true, stopped), (false, working)] {
        for (what, script) in rows {
            let scene = Scene::new()?;
            let ended = scene.run(level, scene.policy(SandboxPolicy::for_command), script);
            let failed = matches!(ended.cause, Cause::Exited(code) if code != 0);
            let passed = ended.cause == Cause::Exited(0);
            let right = if is_stopped { failed } else { passed };
            assert!(right, "{what}: {:?} {}", ended.cause, said(&ended));
            assert_eq!(fs::read_to_string(scene.at("victim/.ssh/id_rsa"))?, "precious\n", "{what}");
            assert_eq!(fs::read_to_string(scene.at("user/a"))?, "a\n", "{what}");
        }
    }
    Ok(())
}

#[test]
fn s_12_m_c21_m_s8_bubblewrap_stops_what_reaches_out_and_lets_work_go_on() -> io::Result<()> {
    let stopped = [&STOPPED[..], &STOPPED_BY_NAMESPACES].concat();
    holds(&bwrap(), &stopped, &WORKING)
}

#[test]
fn s_12_m_c21_m_s8_landlock_stops_what_reaches_out_and_lets_work_go_on() -> io::Result<()> {
    holds(&landlock(), &STOPPED, &WORKING)
}

/// A program that may make namespaces is root in them, and could mount again what is covered.
#[test]
fn r_01_a_sandbox_within_does_not_uncover_the_settings_of_the_kernel() -> io::Result<()> {
    let needs = ClientNeeds { own_sandbox: true, ..ClientNeeds::default() };
    let maker = |facts: SandboxFacts<'_>, tree: &Path| SandboxPolicy::for_maker(facts, tree, &needs);
    for script in [
        ": > /proc/sys/kernel/panic",
        "unshare -Ur sh -c ': > /proc/sys/kernel/panic'",
        "unshare -Urm sh -c 'umount -l /proc/sys; : > /proc/sys/kernel/panic'",
        "unshare -Urm sh -c 'mount -o remount,bind,rw /proc/sys; : > /proc/sys/kernel/panic'",
        "unshare -Urmpf sh -c 'mount -t proc proc /proc && : > /proc/sys/kernel/panic'",
        "mkdir p && unshare -Urmpf sh -c 'mount --bind /proc p && : > p/sys/kernel/panic'",
        // Root writes to them by its number alone, and ends and freezes what is in them.
        "mkdir c && unshare -UrmC mount -t cgroup2 none c",
    ] {
        let scene = Scene::new()?;
        let ended = scene.run(&bwrap(), scene.policy(maker), script);
        assert!(matches!(ended.cause, Cause::Exited(code) if code != 0), "{script}: {}", said(&ended));
    }
    Ok(())
}

#[test]
fn s_12_a_reader_writes_nothing_but_its_own_folders() -> io::Result<()> {
    for level in [bwrap(), landlock()] {
        let scene = Scene::new()?;
        let reader = |facts: SandboxFacts<'_>, tree: &Path| {
            SandboxPolicy::for_reader(facts, tree, &ClientNeeds::default())
        };
        let script = "cat a && git log -1 && ! echo x > a && ! echo x > new && ! rm a && ! chmod 777 a && ! git add . \
                      && echo x > ~/x && echo x > $TMPDIR/x";
        let ended = scene.run(&level, scene.policy(reader), script);
        assert_eq!(ended.cause, Cause::Exited(0), "{} {}", level.line(), said(&ended));
    }
    Ok(())
}

/// Shared memory is a folder that everybody can write to, and what lies there belongs to other programs.
#[test]
fn s_12_shared_memory_of_others_is_not_there() -> io::Result<()> {
    let theirs = tempfile::Builder::new().prefix("archeflow-test-").tempfile_in("/dev/shm")?;
    fs::write(theirs.path(), "precious\n")?;
    for level in [bwrap(), landlock()] {
        let scene = Scene::new()?;
        let script = format!("! cat {0} && {{ echo x > {0} || true; }}", theirs.path().display());
        let ended = scene.run(&level, scene.policy(SandboxPolicy::for_command), &script);
        assert_eq!(ended.cause, Cause::Exited(0), "{} {}", level.line(), said(&ended));
        assert_eq!(fs::read_to_string(theirs.path())?, "precious\n", "{}", level.line());
    }
    Ok(())
}

const SYSTEM_V: &str = "
import ctypes, sys
queue = ctypes.CDLL(None).msgget(int(sys.argv[1]), 0o1600)
print(queue)
sys.exit(queue < 0)
";

/// Queues of System V are found by their number. With Landlock there is no place for own ones apart from everybody's.
#[test]
fn s_12_queues_of_others_are_not_there() -> io::Result<()> {
    for (level, has_own) in [(bwrap(), true), (landlock(), false)] {
        let scene = Scene::new()?;
        fs::write(scene.at("tree/v.py"), SYSTEM_V)?;
        // A new one of nobody's number, which goes with its namespace.
        let ended = scene.run(&level, scene.policy(SandboxPolicy::for_command), "python3 v.py 0");
        assert_eq!(ended.cause == Cause::Exited(0), has_own, "{} {}", level.line(), said(&ended));
        if let (false, Ok(queue)) = (has_own, said(&ended).trim().parse::<u32>()) {
            outside(Path::new("/"), &[], &format!("ipcrm -q {queue}"));
        }
    }
    Ok(())
}

const SOCKETS: &str = "
import socket, sys
what, value = sys.argv[1], sys.argv[2]
if what == 'connect':
    socket.create_connection(('127.0.0.1', int(value)), 5)
elif what == 'abstract':
    s = socket.socket(socket.AF_UNIX); s.connect('\\0' + value)
elif what == 'file':
    s = socket.socket(socket.AF_UNIX); s.connect(value)
elif what == 'sent':
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.sendto(b'x', value)
elif what in ('pair', 'raw'):
    kind = socket.SOCK_DGRAM if what == 'pair' else socket.SOCK_RAW
    s, _ = socket.socketpair(socket.AF_UNIX, kind); s.sendto(b'x', value)
elif what == 'streams':
    a, b = socket.socketpair(); a.send(b'x'); b.recv(1)
elif what == 'own':
    s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); socket.create_connection(s.getsockname(), 5)
elif what == 'udp':
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', int(value)))
";

#[test]
fn s_12_m_c14_m_s9_the_network_is_a_loopback_of_its_own() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let udp_port = udp.local_addr()?.port();
    udp.set_nonblocking(true)?;
    let name = format!("archeflow-test-{}", std::process::id());
    let address = {
        use std::os::linux::net::SocketAddrExt;
        std::os::unix::net::SocketAddr::from_abstract_name(&name)?
    };
    let _abstract_one = std::os::unix::net::UnixListener::bind_addr(&address)?;
    let rows = [
        ("connect", port.to_string(), false, false),
        ("abstract", name, false, false),
        ("own", "x".to_owned(), true, false),
    ];
    for (level, is_bwrap) in [(bwrap(), true), (landlock(), false)] {
        for (what, value, in_bwrap, in_landlock) in &rows {
            let scene = Scene::new()?;
            fs::write(scene.at("tree/s.py"), SOCKETS)?;
            let policy = scene.policy(SandboxPolicy::for_command);
            let ended = scene.run(&level, policy, &format!("python3 s.py {what} {value}"));
            let works = if is_bwrap { *in_bwrap } else { *in_landlock };
            assert_eq!(ended.cause == Cause::Exited(0), works, "{what}: {} {}", level.line(), said(&ended));
        }
        // What is sent into nothing fails or gets lost; it never arrives.
        let scene = Scene::new()?;
        fs::write(scene.at("tree/s.py"), SOCKETS)?;
        let policy = scene.policy(SandboxPolicy::for_command);
        scene.run(&level, policy, &format!("python3 s.py udp {udp_port}"));
        assert!(udp.recv(&mut [0; 8]).is_err(), "{}", level.line());
    }
    let mut scene = Scene::new()?;
    scene.choice.full_network = true;
    fs::write(scene.at("tree/s.py"), SOCKETS)?;
    let policy = scene.policy(SandboxPolicy::for_command);
    assert_eq!(policy.network, SandboxNetwork::Full);
    let ended = scene.run(&bwrap(), policy, &format!("python3 s.py connect {port}"));
    assert_eq!(ended.cause, Cause::Exited(0), "{}", said(&ended));
    Ok(())
}

/// Landlock lets a program connect to sockets that it can't open, such as that of the user's service manager, which starts
/// programs outside (M-S9). Pairs for a program's own children work.
#[test]
fn s_12_m_s9_sockets_that_are_files_are_not_reached() -> io::Result<()> {
    use std::os::unix::net::{UnixDatagram, UnixListener};
    for level in [bwrap(), landlock()] {
        for full_network in [false, true] {
            let mut scene = Scene::new()?;
            scene.choice.full_network = full_network;
            fs::write(scene.at("tree/s.py"), SOCKETS)?;
            let (file, queue) = (scene.at("file"), scene.at("queue"));
            let _server = UnixListener::bind(&file)?;
            let receiver = UnixDatagram::bind(&queue)?;
            receiver.set_nonblocking(true)?;
            let rows = [
                ("file", &file, false),
                ("sent", &queue, false),
                ("pair", &queue, false),
                ("raw", &queue, false),
            ];
            for (what, path, works) in rows.into_iter().chain([("streams", &file, true)]) {
                let script = format!("python3 s.py {what} {}", path.display());
                let ended = scene.run(&level, scene.policy(SandboxPolicy::for_command), &script);
                let line = level.line();
                assert_eq!(ended.cause == Cause::Exited(0), works, "{what}: {line} {}", said(&ended));
                assert!(receiver.recv(&mut [0; 8]).is_err(), "{what}: {line}");
            }
        }
    }
    Ok(())
}

#[test]
fn s_12_exit_codes_and_signals_arrive_as_they_are() -> io::Result<()> {
    for level in [bwrap(), landlock()] {
        for (script, cause) in [
            ("exit 0", Cause::Exited(0)),
            ("exit 7", Cause::Exited(7)),
            ("exit 143", Cause::Exited(143)),
            ("kill -9 $$", Cause::Signaled(9)),
            ("kill -15 $$", Cause::Signaled(15)),
        ] {
            let scene = Scene::new()?;
            let ended = scene.run(&level, scene.policy(SandboxPolicy::for_command), script);
            assert_eq!(ended.cause, cause, "{script}: {} {}", level.line(), said(&ended));
        }
        let scene = Scene::new()?;
        let mut job = scene.job(&level, scene.policy(SandboxPolicy::for_command), "");
        job.program = "/nowhere/to/be/found".into();
        let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
        let Cause::NotStarted(proc::NotStarted::NotFound(why)) = ended.cause else {
            panic!("{}: {:?}", level.line(), ended.cause)
        };
        assert!(why.contains("/nowhere/to/be/found"), "{why}");
    }
    Ok(())
}

/// An exit code of bubblewrap itself would count as one of a test command: its tests would have failed.
#[test]
fn s_12_a_sandbox_that_can_t_be_set_up_is_no_exit_code_of_its_program() -> io::Result<()> {
    let level = bwrap();
    for stderr in ["nothing", "memory", "file"] {
        let scene = Scene::new()?;
        let mut policy = scene.policy(SandboxPolicy::for_command);
        let gone = scene.at("gone");
        policy.mounts.push(PolicyMount::Show { from: gone.clone(), to: gone.clone(), writable: true });
        let stderr = match stderr {
            "nothing" => Sink::nothing(),
            "memory" => Sink::memory(),
            _ => Sink::file(scene.at("stderr")),
        };
        let job = Job { stderr, ..scene.job(&level, policy, "echo begun; exit 1") };
        let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
        let Cause::NotStarted(proc::NotStarted::Sandbox(why)) = ended.cause else {
            panic!("{:?}", ended.cause)
        };
        assert!(why.contains(gone.to_str().unwrap_or_default()), "{why}");
    }
    Ok(())
}

#[test]
fn s_12_a_request_to_end_reaches_the_program_and_its_grace_is_its_own() -> io::Result<()> {
    for level in [bwrap(), landlock()] {
        let scene = Scene::new()?;
        let script = "trap 'echo asked; echo done > $TREE/done; exit 3' TERM\necho ready\nwhile :; do sleep 0.05; done";
        let job = scene.job(&level, scene.policy(SandboxPolicy::for_command), script);
        let watch = Watch::new();
        let asker = watch.clone();
        let mut heard = Vec::new();
        let ended = proc::run(job, &watch, &mut |_, bytes| {
            heard.extend_from_slice(bytes);
            if heard.starts_with(b"ready") {
                asker.stop();
            }
        });
        assert_eq!(ended.cause, Cause::Stopped);
        assert!(said(&ended).ends_with("asked\n"), "{} {}", level.line(), said(&ended));
        assert_eq!(fs::read_to_string(scene.at("tree/done"))?, "done\n");
    }
    Ok(())
}

#[test]
fn s_12_what_a_program_leaves_running_is_ended_and_counted() -> io::Result<()> {
    for level in [bwrap(), landlock()] {
        let scene = Scene::new()?;
        let script = "setsid sleep 7654 >/dev/null 2>&1 &\nsleep 7655 >/dev/null 2>&1 &\necho started";
        let ended = scene.run(&level, scene.policy(SandboxPolicy::for_command), script);
        assert_eq!((ended.cause.clone(), ended.leftovers), (Cause::Exited(0), 2), "{}", level.line());
    }
    Ok(())
}

#[test]
fn s_12_a_fork_that_ignores_everything_dies_with_its_job() -> io::Result<()> {
    for level in [bwrap(), landlock()] {
        let scene = Scene::new()?;
        let script = "trap '' TERM HUP INT\n(trap '' TERM; setsid sleep 7656) &\necho ready\nsleep 7657";
        let mut job = scene.job(&level, scene.policy(SandboxPolicy::for_command), script);
        job.limits.grace = Duration::from_millis(50);
        let watch = Watch::new();
        let asker = watch.clone();
        let ended = proc::run(job, &watch, &mut |_, _| asker.stop());
        assert_eq!(ended.cause, Cause::Stopped, "{}", level.line());
    }
    assert_eq!(proc::finish_all(), 0, "nothing is left");
    Ok(())
}

#[test]
fn s_12_cargo_builds_offline_from_the_users_caches() -> io::Result<()> {
    if !has("cargo", "cargo --version") {
        return Ok(());
    }
    for level in [bwrap(), landlock()] {
        let scene = Scene::new()?;
        let script = "cargo new --vcs none -q k && cd k && cargo build -q --offline && ./target/debug/k";
        let ended = scene.run(&level, scene.policy(SandboxPolicy::for_command), script);
        assert_eq!(ended.cause, Cause::Exited(0), "{} {}", level.line(), said(&ended));
    }
    Ok(())
}

#[test]
fn s_12_a_file_that_grows_beyond_the_limit_ends_its_program() -> io::Result<()> {
    for level in [bwrap(), landlock()] {
        let mut scene = Scene::new()?;
        scene.choice.limits = SandboxLimits { file_size: Some(1024 * 1024), ..SandboxLimits::default() };
        let policy = scene.policy(SandboxPolicy::for_command);
        let ended = scene.run(&level, policy, "exec head -c 9000000 /dev/zero > big");
        let Cause::OverLimit(why) = &ended.cause else { panic!("{} {:?}", level.line(), ended.cause) };
        assert!(why.contains("sandbox.file_size"), "{why}");
        assert!(fs::metadata(scene.at("tree/big"))?.len() <= 1024 * 1024);
    }
    Ok(())
}

#[test]
fn s_12_a_client_can_build_a_sandbox_of_its_own_and_tests_can_not() -> io::Result<()> {
    let scene = Scene::new()?;
    // Root without its capabilities can't be mapped into a namespace, so nothing is mapped here.
    let script = "unshare -U true";
    let needs = ClientNeeds { own_sandbox: true, ..ClientNeeds::default() };
    let maker = |facts: SandboxFacts<'_>, tree: &Path| SandboxPolicy::for_maker(facts, tree, &needs);
    let ended = scene.run(&bwrap(), scene.policy(maker), script);
    assert_eq!(ended.cause, Cause::Exited(0), "{}", said(&ended));
    let ended = scene.run(&bwrap(), scene.policy(SandboxPolicy::for_command), script);
    assert!(matches!(ended.cause, Cause::Exited(code) if code != 0), "{}", said(&ended));
    Ok(())
}

#[test]
fn s_12_bubblewrap_works_within_bubblewrap() -> io::Result<()> {
    // The inner one has a `/dev` of its own, so what it works on must not be in `/dev/shm`.
    let scene = Scene::in_folder(tempfile::tempdir_in("/var/tmp")?)?;
    let needs = ClientNeeds { own_sandbox: true, ..ClientNeeds::default() };
    let maker = |facts: SandboxFacts<'_>, tree: &Path| SandboxPolicy::for_maker(facts, tree, &needs);
    let script = "bwrap --new-session --die-with-parent --ro-bind / / --dev /dev --bind $TREE $TREE --unshare-user \
                  --unshare-pid --unshare-net -- sh -c 'echo x > new && ! echo x > ~/x && git log -1'";
    let ended = scene.run(&bwrap(), scene.policy(maker), script);
    assert_eq!(ended.cause, Cause::Exited(0), "{}", said(&ended));
    Ok(())
}

/// Whether a tool is installed here. One that is not is named: a machine without any of them has tested nothing.
fn has(tool: &str, asked: &str) -> bool {
    let found = outside(Path::new("/"), &[], &format!("{asked} >/dev/null 2>&1"));
    if !found {
        let line = format!("NOT TESTED: {tool} is not installed here\n");
        let _ = io::Write::write_all(&mut io::stdout(), line.as_bytes());
    }
    found
}

/// What the user does before, outside of the sandbox.
fn outside(at: &Path, variables: &[(OsString, OsString)], script: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).current_dir(at).envs(variables.iter().cloned());
    let done = children::spawn(&mut shell).and_then(|mut child| children::wait(&mut child));
    done.is_ok_and(|status| status.success())
}

/// Runs the script at both levels, without a network.
fn works_inside(scene: &Scene, what: &str, script: &str) {
    for level in [bwrap(), landlock()] {
        let ended = scene.run(&level, scene.policy(SandboxPolicy::for_command), script);
        assert_eq!(ended.cause, Cause::Exited(0), "{what}: {} {}", level.line(), said(&ended));
    }
}

#[test]
fn s_12_pip_and_pytest_work_offline() -> io::Result<()> {
    let wheel = "python3 - <<'P'\nimport zipfile\nw = zipfile.ZipFile('k-1-py3-none-any.whl', 'w')\n\
        w.writestr('k.py', 'x = 1')\nd = 'k-1.dist-info/'\n\
        w.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: k\\nVersion: 1\\n')\n\
        w.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        w.writestr(d + 'RECORD', '')\nw.close()\nP\n";
    if has("pip", "python3 -m pip --version") {
        let mut scene = Scene::new()?;
        // A folder of wheels of the user's, and a cache that pip would write to if it could.
        fs::create_dir_all(scene.at("wheels"))?;
        fs::create_dir_all(scene.at("pip-cache"))?;
        assert!(outside(&scene.at("wheels"), &[], wheel));
        scene.variables.push(("PIP_CACHE_DIR".into(), scene.at("pip-cache").into()));
        scene.choice.read.push(scene.at("wheels"));
        let wheels = scene.at("wheels").display().to_string();
        let script = format!(
            "python3 -m venv --clear v && v/bin/pip install -q --no-index --find-links {wheels} k && \
             v/bin/python -c 'import k; assert k.x == 1'"
        );
        works_inside(&scene, "pip", &script);
    }
    if has("pytest", "python3 -m pytest --version") {
        let pytest = "printf 'def test_it(tmp_path):\\n    assert tmp_path.is_dir()\\n' > test_it.py && python3 -m pytest -q";
        works_inside(&Scene::new()?, "pytest", pytest);
    }
    Ok(())
}

#[test]
fn s_12_go_builds_and_tests_offline_from_the_users_modules() -> io::Result<()> {
    if !has("go", "go version") {
        return Ok(());
    }
    let mut scene = Scene::new()?;
    // A module comes into the user's cache, from a folder in place of the public proxy.
    let proxy = "mkdir -p proxy/example.org/dep/@v && cd proxy/example.org/dep/@v && echo v1.0.0 > list && \
        echo '{\"Version\":\"v1.0.0\"}' > v1.0.0.info && echo 'module example.org/dep' > v1.0.0.mod && \
        python3 -c \"import zipfile; z = zipfile.ZipFile('v1.0.0.zip', 'w'); d = 'example.org/dep@v1.0.0/'; \
        z.writestr(d + 'go.mod', 'module example.org/dep\\n'); \
        z.writestr(d + 'dep.go', 'package dep\\nconst One = 1\\n')\"";
    assert!(outside(scene.folder.path(), &[], proxy));
    let project = "cd tree && printf 'module example.org/k\\ngo 1.16\\nrequire example.org/dep v1.0.0\\n' > go.mod && \
        printf 'package k\\nimport \"example.org/dep\"\\nconst Two = dep.One + dep.One\\n' > k.go && \
        printf 'package k\\nimport \"testing\"\\nfunc TestTwo(t *testing.T) { if Two != 2 { t.Fatal() } }\\n' > k_test.go && \
        go mod download example.org/dep && go build ./...";
    let of_the_user: Vec<(OsString, OsString)> = vec![
        ("GOMODCACHE".into(), scene.at("modules").into()),
        ("GOPROXY".into(), format!("file://{}", scene.at("proxy").display()).into()),
        ("GOFLAGS".into(), "-mod=mod -modcacherw".into()),
        ("GONOSUMDB".into(), "*".into()),
    ];
    assert!(outside(scene.folder.path(), &of_the_user, project));
    scene.variables.push(("GOMODCACHE".into(), scene.at("modules").into()));
    let script = "go build ./... && go vet ./... && go test ./... && GOFLAGS=-mod=mod go test ./... && \
        ! echo x > $(go env GOMODCACHE)/x";
    works_inside(&scene, "go", script);
    Ok(())
}

/// A registry with one package, which answers as long as this process lives.
fn registry(archive: Vec<u8>, integrity: String) -> io::Result<u16> {
    use std::io::{BufRead, Write};
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let serve = move |mut client: std::net::TcpStream| -> io::Result<()> {
        let mut lines = io::BufReader::new(client.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let tarball = format!("http://127.0.0.1:{port}/dep-1.0.0.tgz");
        let dist = serde_json::json!({"tarball": tarball, "integrity": integrity});
        let versions = serde_json::json!({"1.0.0": {"name": "dep", "version": "1.0.0", "dist": dist}});
        let about =
            serde_json::json!({"name": "dep", "dist-tags": {"latest": "1.0.0"}, "versions": versions});
        let (status, body) = match first.split(' ').nth(1).unwrap_or_default() {
            "/dep" => ("200 OK", about.to_string().into_bytes()),
            "/dep-1.0.0.tgz" => ("200 OK", archive.clone()),
            _ => ("404 Not Found", Vec::new()),
        };
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n");
        client.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
        client.write_all(&body)
    };
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let _ = serve(client);
        }
    });
    Ok(port)
}

/// Everything in a folder, to see that it stays as it is.
fn listing(folder: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all.extend(listing(&path)?);
        } else {
            all.push((path.clone(), fs::read(&path)?));
        }
    }
    all.sort();
    Ok(all)
}

#[test]
fn s_12_npm_installs_offline_from_the_users_cache_and_leaves_it_alone() -> io::Result<()> {
    if !has("npm", "npm --version") {
        return Ok(());
    }
    let mut scene = Scene::new()?;
    let pack = "mkdir -p made/dep && cd made/dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > package.json && \
        echo 'module.exports = 1' > index.js && npm pack --silent >/dev/null && mv dep-1.0.0.tgz .. && cd .. && \
        node -p \"'sha512-' + crypto.createHash('sha512').update(fs.readFileSync('dep-1.0.0.tgz')).digest('base64')\" > integrity";
    assert!(outside(scene.folder.path(), &[], pack));
    let port = registry(
        fs::read(scene.at("made/dep-1.0.0.tgz"))?,
        fs::read_to_string(scene.at("made/integrity"))?.trim().to_owned(),
    )?;
    // The user has installed it once.
    let mut of_the_user: Vec<(OsString, OsString)> = vec![
        ("npm_config_cache".into(), scene.at("cache").into()),
        ("HOME".into(), scene.at("victim").into()),
    ];
    let install = format!(
        "cd tree && echo 'registry=http://127.0.0.1:{port}/' > .npmrc && \
         echo '{{\"name\":\"k\",\"version\":\"1.0.0\",\"dependencies\":{{\"dep\":\"^1.0.0\"}}}}' > package.json && \
         npm install --silent --no-audit && cp package-lock.json lock && rm -rf node_modules"
    );
    assert!(outside(scene.folder.path(), &of_the_user, &install));
    let before = listing(&scene.at("cache/_cacache"))?;
    assert!(!before.is_empty(), "the user's cache is in use");
    scene.variables.append(&mut of_the_user);
    for (what, script) in [
        ("ci", "cp lock package-lock.json && npm ci && node -e 'require(\"dep\")'"),
        (
            "install",
            "cp lock package-lock.json && rm -rf node_modules && npm install && node -e 'require(\"dep\")'",
        ),
        (
            "install without a lock file",
            "rm -rf node_modules package-lock.json && npm install && node -e 'require(\"dep\")'",
        ),
        (
            "pack and install of an archive",
            "mkdir -p own && cd own && echo '{\"name\":\"own\",\"version\":\"1.0.0\"}' > package.json && npm pack && cd .. && \
             npm install --no-save ./own/own-1.0.0.tgz && test -d node_modules/own",
        ),
        ("test", "npm pkg set scripts.test='echo tested' && npm test | grep -x tested"),
    ] {
        works_inside(&scene, what, script);
    }
    assert!(listing(&scene.at("cache/_cacache"))? == before, "the user's cache is as it was");
    // In a folder without a package, a lock file elsewhere can be installed from links.
    let deep = "rm -rf package.json node_modules && mkdir -p x/y && cp .npmrc lock x/y && cd x/y && cp lock package-lock.json && \
        echo '{\"name\":\"k\",\"version\":\"1.0.0\",\"dependencies\":{\"dep\":\"^1.0.0\"}}' > package.json && npm ci";
    fs::remove_file(scene.at("tree/package.json"))?;
    fs::remove_dir_all(scene.at("tree/own"))?;
    works_inside(&scene, "ci from links", deep);
    Ok(())
}

#[test]
fn s_12_a_model_on_this_machine_is_found_at_its_own_port() -> io::Result<()> {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let echo = std::thread::spawn(move || -> io::Result<()> {
        let (mut client, _) = listener.accept()?;
        let mut asked = String::new();
        client.read_to_string(&mut asked)?;
        client.write_all(format!("heard {asked}").as_bytes())
    });
    let scene = Scene::new()?;
    let socket = scene.at("p.sock");
    let proxy = Proxy::open(&socket, HostList::new(&[], &[format!("localhost:{port}")]))?;
    let local = vec![LocalPort { host: "localhost".to_owned(), port }];
    let access = ProxyAccess { socket, port: None, local };
    let needs = ClientNeeds { proxy: Some(access), ..ClientNeeds::default() };
    let maker = |facts: SandboxFacts<'_>, tree: &Path| SandboxPolicy::for_maker(facts, tree, &needs);
    let script = format!(
        "python3 -c \"import socket; s = socket.create_connection(('127.0.0.1', {port}), 20); s.sendall(b'word'); \
         s.shutdown(socket.SHUT_WR); print(s.recv(99).decode())\""
    );
    let ended = scene.run(&bwrap(), scene.policy(maker), &script);
    assert_eq!(said(&ended), "heard word\n");
    assert!(proxy.refused().is_empty());
    echo.join().expect("the server ends")?;
    Ok(())
}

#[test]
fn s_12_a_hook_changes_the_checkout_and_not_the_repository_behind_it() -> io::Result<()> {
    for level in [bwrap(), landlock()] {
        let scene = Scene::new()?;
        fs::create_dir(scene.at("user/.archeflow"))?;
        let git = scene.at("user/.git");
        let hook = |facts: SandboxFacts<'_>, _: &Path| SandboxPolicy::for_hook(facts, &git);
        let mut policy = scene.policy(hook);
        policy.env.push(("HERE".into(), scene.at("user").into()));
        let script =
            "cd $USERS && echo x > new && git log -1 && ! echo x >> .git/config && ! echo x > .archeflow/x";
        let ended = scene.run(&level, policy, script);
        // Landlock can't take back within a folder what it gave for the folder.
        let expected = if matches!(level, SandboxLevel::Bubblewrap { .. }) { 0 } else { 1 };
        assert_eq!(ended.cause, Cause::Exited(expected), "{} {}", level.line(), said(&ended));
    }
    Ok(())
}

/// A script and the limit that it breaks.
fn over(limits: SandboxLimits, script: &str, named: &str) -> io::Result<()> {
    let mut scene = Scene::new()?;
    scene.choice.limits = limits;
    let ended = scene.run(&bwrap(), scene.policy(SandboxPolicy::for_command), script);
    let Cause::OverLimit(why) = &ended.cause else { panic!("{:?} {}", ended.cause, said(&ended)) };
    assert!(why.contains(named), "{why}");
    Ok(())
}

#[test]
fn s_12_m_c13_m_c19_a_job_over_a_limit_is_ended_and_says_which() -> io::Result<()> {
    let mega = 1024 * 1024;
    // The processes together: each alone stays below.
    let memory = SandboxLimits { memory: Some(200 * mega), ..SandboxLimits::default() };
    let two =
        "for i in 1 2 3; do python3 -c 'import time; a = b\"x\" * 120_000_000; time.sleep(600)' & done; wait";
    over(memory, two, "sandbox.memory")?;
    // Files in memory, and memory that is meant to be shared, belong to no process alone.
    over(memory, "head -c 300000000 /dev/zero > /dev/shm/big; sleep 600", "sandbox.memory")?;
    let shared = "python3 -c 'import mmap, time; m = mmap.mmap(-1, 300_000_000); \
                  [m.write(b\"x\" * 1_000_000) for _ in range(300)]; time.sleep(600)'";
    over(memory, shared, "sandbox.memory")?;
    let processes = SandboxLimits { processes: Some(30), ..SandboxLimits::default() };
    over(processes, "for i in $(seq 50); do sleep 600 & done 2>/dev/null; sleep 600", "sandbox.processes")?;
    let disk = SandboxLimits { disk: Some(20 * mega), ..SandboxLimits::default() };
    over(disk, "head -c 60000000 /dev/urandom > big; sync; sleep 600", "sandbox.disk")?;
    // empty files use up a disk, too.
    over(disk, "seq 12000 | xargs touch; sleep 600", "sandbox.disk")
}

#[test]
fn s_12_one_process_gets_no_more_memory_than_the_limit() -> io::Result<()> {
    let mut scene = Scene::new()?;
    scene.choice.limits = SandboxLimits { memory: Some(100 << 20), ..SandboxLimits::default() };
    let policy = scene.policy(SandboxPolicy::for_command);
    let ended = scene.run(&bwrap(), policy, "python3 -c 'b\"x\" * 900_000_000'");
    assert!(said(&ended).contains("MemoryError"), "{:?} {}", ended.cause, said(&ended));
    Ok(())
}

const PROXIED: &str = "
import socket, sys
host, port, secret = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.create_connection(('127.0.0.1', 3128), 20)
s.sendall(f'CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n'.encode())
head = s.recv(4096).decode()
print(head.split('\\r\\n')[0])
if ' 200 ' in head:
    s.sendall(secret.encode()); s.shutdown(socket.SHUT_WR)
    print(s.recv(4096).decode())
";

#[test]
fn s_12_m_s9_an_agent_reaches_listed_hosts_through_the_proxy_and_no_others() -> io::Result<()> {
    use std::io::{Read, Write};
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let echo = std::thread::spawn(move || -> io::Result<()> {
        let (mut client, _) = listener.accept()?;
        let mut asked = String::new();
        client.read_to_string(&mut asked)?;
        client.write_all(format!("heard {asked}").as_bytes())
    });
    let scene = Scene::new()?;
    let socket = scene.at("p.sock");
    let proxy = Proxy::open(&socket, HostList::new(&[], &[format!("127.0.0.1:{port}")]))?;
    fs::write(scene.at("tree/p.py"), PROXIED)?;
    let maker = |facts: SandboxFacts<'_>, tree: &Path| {
        let proxy = Some(ProxyAccess { socket: socket.clone(), port: None, local: Vec::new() });
        let needs = ClientNeeds { proxy, ..ClientNeeds::default() };
        SandboxPolicy::for_maker(facts, tree, &needs)
    };
    let script =
        format!("python3 p.py 127.0.0.1 {port} word; python3 p.py example.com 443 x; echo $HTTPS_PROXY");
    let ended = scene.run(&bwrap(), scene.policy(maker), &script);
    let lines =
        "HTTP/1.1 200 Connection established\nheard word\nHTTP/1.1 403 Forbidden\nhttp://127.0.0.1:3128\n";
    assert_eq!(said(&ended), lines);
    assert_eq!(proxy.refused(), ["example.com:443"]);
    echo.join().expect("the server ends")?;
    Ok(())
}

#[test]
fn s_12_masked_files_are_empty_and_stay_as_they_are() -> io::Result<()> {
    let scene = Scene::new()?;
    fs::write(scene.at("tree/settings.json"), "{\"hooks\": 1}")?;
    let mut policy = scene.policy(SandboxPolicy::for_command);
    policy.masked.push(scene.at("tree/settings.json"));
    let script =
        "test -e settings.json && test ! -s settings.json && ! echo x > settings.json && ! rm settings.json";
    let ended = scene.run(&bwrap(), policy.clone(), script);
    assert_eq!(ended.cause, Cause::Exited(0), "{}", said(&ended));
    assert_eq!(fs::read_to_string(scene.at("tree/settings.json"))?, "{\"hooks\": 1}");
    // The other level can't, and says so instead of starting.
    let ended = scene.run(&landlock(), policy, script);
    assert!(matches!(ended.cause, Cause::NotStarted(_)), "{:?}", ended.cause);
    Ok(())
}
