//! `tiphys rehearse`.

pub use crate::rehearse::{Args, run};
