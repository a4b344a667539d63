//! How the `tiphys` binary is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // At a fixed address, as Go links its programs: a position-independent binary of this size has some 60,000 addresses
    // to correct before it starts, which takes longer than rendering a small chart.
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
        // The unwinder from the archive that comes with the C compiler: loading its shared library, which asks the
        // processor for its features once more, takes longer than rendering a small chart.
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
