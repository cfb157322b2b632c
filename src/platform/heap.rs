//! How the C library keeps memory that is free.

/// Keeps the heap in one piece and gives large blocks back, so that a team at work for months needs no more than
/// one that has just begun. By default there may be eight arenas a core, each with free memory of its own, and the
/// size above which a block goes back grows to 32 MB. To be called once, before the first thread begins.
pub fn keep_together() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (parameter, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_MMAP_THRESHOLD, 256 * 1024),
        (libc::M_TRIM_THRESHOLD, 1024 * 1024),
    ] {
        // SAFETY: `mallopt` takes two numbers and keeps them; no other thread runs yet.
        #[expect(unsafe_code, reason = "the C library has no other way to say it from within")]
        let taken = unsafe { libc::mallopt(parameter, value) };
        debug_assert_eq!(taken, 1, "mallopt({parameter}, {value})");
    }
}
