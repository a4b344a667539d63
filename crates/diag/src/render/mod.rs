//! How diagnostics are shown. One file per form.

mod concise;
mod full;
mod json;

pub use concise::concise;
pub use full::full;
pub use json::json;
