//! Which system calls a sandboxed program is refused. What is not named is allowed: programs of all kinds run here.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// Not for any program of a user: the kernel's own doors, keys of the session, clocks, and what goes past filters.
const NEVER: [i64; 27] = [
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_open_by_handle_at,
    libc::SYS_lookup_dcookie,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_nfsservctl,
    libc::SYS_setns,
];

/// Refused as if the kernel did not have them, so that programs take another way.
const ABSENT: [i64; 3] = [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// What a sandbox is built with. A program without a sandbox of its own needs none of it.
const BUILDING: [i64; 12] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fsconfig,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
];

/// Memory, queues and counters that programs find by a number or a name which is no path. Without a namespace of their own
/// they are everybody's, and Landlock does not know them.
const SHARED: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Of calls that name files by path, which Landlock does not stop. `fchmod` is not among them: what it changes was
/// opened, and opening is stopped.
const MODES: [i64; 12] = [
    libc::SYS_fchmodat,
    SYS_FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_utimensat,
    libc::SYS_fchown,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];

/// Newer than the list of the library; the numbers are the same everywhere.
const SYS_FCHMODAT2: i64 = 452;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

#[cfg(target_arch = "x86_64")]
const MODES_OF_OLD: [i64; 6] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_OF_OLD: [i64; 0] = [];

/// On x86 every call has a second number with this bit (x32), which would go past the rules. Few kernels still have them.
const SECOND_NUMBER: u32 = 0x4000_0000;

/// Requests that type into a terminal: `TIOCSTI` and `TIOCLINUX`. As numbers, since `libc` gives them another type for
/// musl than for glibc.
const TERMINAL: [u64; 2] = [0x5412, 0x541c];

/// What a filter is made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterScope {
    pub(super) nested_sandboxes: bool,
    /// Whether sockets, shared memory and processes of others are out of sight anyway.
    pub(super) own_namespaces: bool,
    pub(super) network: FilteredNetwork,
    /// Permissions and owners by path.
    pub(super) modes: bool,
}

/// Which sockets of the internet there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilteredNetwork {
    None,
    /// Connections alone, which Landlock looks at: nothing that sends without one, and no protocol that it does not know.
    Connections,
    Full,
}

/// Two filters, because one has one answer for all it refuses.
pub(super) fn programs(scope: FilterScope) -> io::Result<[BpfProgram; 2]> {
    let mut refused: Rules = NEVER.iter().map(|call| (*call, Vec::new())).collect();
    let mut absent: Rules = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
    refused.insert(libc::SYS_ioctl, any_of(TERMINAL.iter().map(|request| is(1, *request)))?);
    let mut sockets = vec![other_sockets(scope)?];
    if scope.network == FilteredNetwork::Connections {
        sockets.extend(unconnected()?);
        // What is sent while connecting goes past the rule for connections.
        let fast = u64::from(libc::MSG_FASTOPEN.cast_unsigned());
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            refused.insert(call, any_of([has(flags, fast)].into_iter())?);
        }
    }
    refused.insert(libc::SYS_socket, sockets);
    if !scope.own_namespaces {
        refused.insert(libc::SYS_socketpair, sending_pairs()?);
        refused.insert(libc::SYS_prlimit64, vec![limits_of_others()?]);
        absent.extend(SHARED.iter().map(|call| (*call, Vec::new())));
    }
    // Whoever has a namespace for control groups of its own may mount them, and as root freeze and end every program of the
    // machine by them.
    let mut namespaces = libc::CLONE_NEWCGROUP;
    if !scope.nested_sandboxes {
        refused.extend(BUILDING.iter().map(|call| (*call, Vec::new())));
        namespaces = libc::CLONE_NEWUSER;
    }
    let flags = u64::from(namespaces.cast_unsigned());
    refused.insert(libc::SYS_clone, any_of([has(0, flags)].into_iter())?);
    if scope.nested_sandboxes {
        refused.insert(libc::SYS_unshare, any_of([has(0, flags)].into_iter())?);
    }
    // Its flags lie in memory, where a filter can't look; every library goes on with `clone`.
    absent.insert(libc::SYS_clone3, Vec::new());
    if !scope.modes {
        refused.extend(MODES.iter().chain(&MODES_OF_OLD).map(|call| (*call, Vec::new())));
    }
    let mut absent = compile(absent, libc::ENOSYS)?;
    if cfg!(target_arch = "x86_64") {
        absent.splice(0..0, without_second_numbers());
    }
    Ok([compile(refused, libc::EPERM)?, absent])
}

/// The beginning of a program: calls by their second number are refused as if the kernel did not have them. A rule for each
/// would double the filter, which the kernel goes through once for every call when it is set.
fn without_second_numbers() -> [seccompiler::sock_filter; 3] {
    let step = |code: u32, jf: u8, k: u32| seccompiler::sock_filter {
        code: u16::try_from(code).unwrap_or_default(),
        jt: 0,
        jf,
        k,
    };
    let no_such_call = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    [
        // The number of the call is the first word there is.
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 1, SECOND_NUMBER),
        step(libc::BPF_RET | libc::BPF_K, 0, no_such_call),
    ]
}

/// A program as `bwrap` reads it from a file.
pub(super) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let step = |step: &seccompiler::sock_filter| {
        let [a, b] = step.code.to_ne_bytes();
        let [c, d, e, f] = step.k.to_ne_bytes();
        [a, b, step.jt, step.jf, c, d, e, f]
    };
    program.iter().flat_map(step).collect()
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Condition = Result<SeccompCondition, seccompiler::BackendError>;

fn compile(rules: Rules, answer: i32) -> io::Result<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(answer.cast_unsigned());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

fn is(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn has(argument: u8, bits: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bits), bits)
}

fn any_of(conditions: impl Iterator<Item = Condition>) -> io::Result<Vec<SeccompRule>> {
    conditions
        .map(|condition| {
            SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
        })
        .collect()
}

/// Every family of sockets but those of the kernel and, where wanted, of the internet. Some reach past namespaces. Those of
/// this machine are files, and Landlock lets programs connect to files that they can't open: to the service manager of the
/// user, for one, which starts programs outside.
fn other_sockets(scope: FilterScope) -> io::Result<SeccompRule> {
    let internet = [libc::AF_INET, libc::AF_INET6].into_iter();
    let internet = internet.filter(|_| scope.network != FilteredNetwork::None);
    let machine = [libc::AF_UNIX].into_iter().filter(|_| scope.own_namespaces);
    let allowed = [libc::AF_NETLINK].into_iter().chain(machine).chain(internet);
    let conditions: Result<Vec<_>, _> = allowed
        .map(|family| {
            let family = u64::from(family.cast_unsigned());
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)
        })
        .collect();
    SeccompRule::new(conditions.map_err(io::Error::other)?).map_err(io::Error::other)
}

/// Pairs of sockets that can send to others than each other. The kernel makes the same of both kinds.
fn sending_pairs() -> io::Result<Vec<SeccompRule>> {
    let kinds = [libc::SOCK_DGRAM, libc::SOCK_RAW];
    any_of(kinds.into_iter().map(|kind| {
        let kind = u64::from(kind.cast_unsigned());
        SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(0xf), kind)
    }))
}

/// New limits for a process that is named: one that has used up its processor time is ended, whoever it belongs to.
fn limits_of_others() -> io::Result<SeccompRule> {
    let given = |argument, length| SeccompCondition::new(argument, length, SeccompCmpOp::Ne, 0);
    all_of([given(0, SeccompCmpArgLen::Dword), given(2, SeccompCmpArgLen::Qword)])
}

/// Sockets of the internet that are no connections by TCP.
fn unconnected() -> io::Result<Vec<SeccompRule>> {
    let mut rules = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let family = || is(0, u64::from(family.cast_unsigned()));
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP]
        {
            let kind = u64::from(kind.cast_unsigned());
            let kind = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(0xf), kind);
            rules.push(all_of([family(), kind])?);
        }
        let other = |value: i32| {
            let value = u64::from(value.cast_unsigned());
            SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
        };
        rules.push(all_of([family(), other(libc::IPPROTO_IP), other(libc::IPPROTO_TCP)])?);
    }
    Ok(rules)
}

fn all_of<const N: usize>(conditions: [Condition; N]) -> io::Result<SeccompRule> {
    let conditions: Result<Vec<_>, _> = conditions.into_iter().collect();
    SeccompRule::new(conditions.map_err(io::Error::other)?).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_12_a_filter_is_steps_of_eight_bytes_and_grows_with_what_it_refuses() -> io::Result<()> {
        let scope = FilterScope {
            nested_sandboxes: true,
            own_namespaces: true,
            network: FilteredNetwork::Full,
            modes: true,
        };
        let [open, _] = programs(scope)?;
        let [closed, _] = programs(FilterScope {
            nested_sandboxes: false,
            own_namespaces: false,
            network: FilteredNetwork::None,
            modes: false,
        })?;
        assert_eq!(bytes(&open).len(), open.len() * 8);
        assert!(closed.len() > open.len(), "{} {}", closed.len(), open.len());
        Ok(())
    }

    /// What a program answers to a call without arguments, as the kernel works through it.
    fn answer(program: &BpfProgram, call: i64) -> u32 {
        let number = u32::try_from(call).unwrap_or(u32::MAX);
        // The kernel's own numbers for the two architectures.
        let arch = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        let (mut at, mut value) = (0, 0_u32);
        while let Some(step) = program.get(at) {
            at += 1;
            let code = u32::from(step.code);
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
                value = match step.k {
                    0 => number,
                    4 => arch,
                    _ => 0,
                };
            } else if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K {
                at += jump(value == step.k);
            } else if code == libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K {
                at += jump(value & step.k != 0);
            } else if code == libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K {
                at += jump(value > step.k);
            } else if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K {
                at += jump(value >= step.k);
            } else if code == libc::BPF_JMP | libc::BPF_JA {
                at += usize::try_from(step.k).unwrap_or(usize::MAX);
            } else if code == libc::BPF_ALU | libc::BPF_AND | libc::BPF_K {
                value &= step.k;
            } else if code == libc::BPF_RET | libc::BPF_K {
                return step.k;
            } else {
                panic!("a step that the filters did not use so far: {code:#x}");
            }
        }
        panic!("the program has no end");
    }

    #[test]
    fn s_12_calls_are_refused_by_both_of_their_numbers() -> io::Result<()> {
        let scope = FilterScope {
            nested_sandboxes: false,
            own_namespaces: true,
            network: FilteredNetwork::Full,
            modes: true,
        };
        let [refused, absent] = programs(scope)?;
        let refuses = |error: i32| libc::SECCOMP_RET_ERRNO | error.cast_unsigned();
        for (call, by_refused, by_absent) in [
            (libc::SYS_getpid, libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_ALLOW),
            (libc::SYS_mount, refuses(libc::EPERM), libc::SECCOMP_RET_ALLOW),
            (libc::SYS_keyctl, refuses(libc::EPERM), libc::SECCOMP_RET_ALLOW),
            (libc::SYS_io_uring_setup, libc::SECCOMP_RET_ALLOW, refuses(libc::ENOSYS)),
            (libc::SYS_clone3, libc::SECCOMP_RET_ALLOW, refuses(libc::ENOSYS)),
        ] {
            assert_eq!((answer(&refused, call), answer(&absent, call)), (by_refused, by_absent), "{call}");
            if cfg!(target_arch = "x86_64") {
                let second = call | i64::from(SECOND_NUMBER);
                assert_eq!(answer(&absent, second), refuses(libc::ENOSYS), "the second number of {call}");
            }
        }
        Ok(())
    }
}
