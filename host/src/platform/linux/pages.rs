//! The pages of the program itself.

#![expect(
    unsafe_code,
    reason = "what the loader has mapped is known to the C library only, and given back by a call of it"
)]

use std::ffi::{c_int, c_void};
use std::ops::Range;

use rustix::param::page_size;

/// Lets go of the program's code and constants in memory. The kernel has them in its cache, from where they are mapped again
/// when they are used.
pub(in crate::platform) fn release_program() {
    for part in constant_parts() {
        // SAFETY: nothing was ever written to this part, so what comes back from the file is what was there.
        unsafe { libc::madvise(part.start as *mut c_void, part.len(), libc::MADV_DONTNEED) };
    }
}

/// The parts of the program that can't be written to. What the loader adjusted once and protected since is not among them:
/// by the program's own table it can be written to.
fn constant_parts() -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    // SAFETY: `note` gets the pointer to this very list, and is not called any more when this returns.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut parts).cast()) };
    parts
}

/// Is called for the program first, and then, unless it says that this is enough, for each library.
unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _size: usize, parts: *mut c_void) -> c_int {
    // SAFETY: both are what `dl_iterate_phdr` promises and `constant_parts` has handed over.
    let (info, parts) = unsafe { (&*info, &mut *parts.cast::<Vec<Range<usize>>>()) };
    if info.dlpi_phdr.is_null() {
        return 1;
    }
    // SAFETY: `dlpi_phnum` is the number of entries.
    let entries = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for entry in
        entries.iter().filter(|entry| entry.p_type == libc::PT_LOAD && entry.p_flags & libc::PF_W == 0)
    {
        let number = |value: u64| usize::try_from(value).unwrap_or(0);
        let start = number(info.dlpi_addr).wrapping_add(number(entry.p_vaddr));
        // The last page may be shared with what is behind it.
        let (start, end) = (start & !(page_size() - 1), (start + number(entry.p_memsz)) & !(page_size() - 1));
        if start < end {
            parts.push(start..end);
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_written_to_is_released_and_the_program_continues() {
        let parts = constant_parts();
        assert!(parts.iter().any(|part| part.contains(&(release_program as fn() as usize))), "its code");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let program = std::fs::read_link("/proc/self/exe").unwrap_or_default().display().to_string();
        let mut found = 0;
        for line in maps.lines().filter(|line| line.ends_with(&program)) {
            let (range, rest) = line.split_once(' ').unwrap_or_default();
            let number = |text: &str| usize::from_str_radix(text, 16).unwrap_or(0);
            let (start, end) = range.split_once('-').map_or((0, 0), |(a, b)| (number(a), number(b)));
            if parts.iter().any(|part| part.start < end && start < part.end) {
                assert!(rest.starts_with("r-"), "{line}");
                found += 1;
            }
        }
        assert!(found > 0, "{maps}");
        release_program();
        assert_eq!(format!("{:?}", Some("text")), "Some(\"text\")");
    }
}
