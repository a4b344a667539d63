//! `cargo xtask bench <suite>`: Tiphys beside its peer in one run. One file per suite.

mod pair;

pub use pair::{Measured, Sample, ratio, table, take_turns};
