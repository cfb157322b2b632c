//! How the program is linked.

/// A build for tests is started some ten thousand times, and most of what a start then takes is the moving of its
/// addresses to where it was loaded. It is linked for one place; a release stays movable.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let is_static = of("CARGO_CFG_TARGET_FEATURE").split(',').any(|it| it == "crt-static");
    let is_usual = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    if of("PROFILE") == "debug" && is_usual && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
