//! `tiphys rehearse`.

pub(crate) use crate::rehearse::{Args, run};
