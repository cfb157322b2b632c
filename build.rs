//! How the program is linked.

/// Tests start the program over and over, and relocation is most of what a start of a debug build takes: that build is
/// linked for a fixed address. A release stays position-independent.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let is_static = of("CARGO_CFG_TARGET_FEATURE").split(',').any(|it| it == "crt-static");
    let is_usual = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    if of("PROFILE") == "debug" && is_usual && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
