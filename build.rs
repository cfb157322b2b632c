//! How the program is linked.

/// A build for tests is started some ten thousand times, and most of what a start then takes is the moving of its
/// addresses to where it was loaded. It is linked for one place; a release stays movable.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|it| it == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
