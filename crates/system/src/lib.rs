//! What is asked of the operating system that no safe function asks. Each module is one call that Rust cannot check, and says
//! why nothing else does.

mod names;
mod pages;

pub use names::look_up_names_alone;
pub use pages::reserve;
