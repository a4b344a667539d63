//! Tests of the diagnosis, in one binary.

mod cases;
