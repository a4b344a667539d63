//! `tiphys version`.

/// Prints the version.
pub fn run() {
    println!("tiphys {}", env!("CARGO_PKG_VERSION"));
}
