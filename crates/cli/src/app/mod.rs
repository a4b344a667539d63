//! What the commands on Applications share: the cluster that they live in, operations and their end,
//! desired and live objects.

pub mod consent;
pub mod desired;
pub mod finished;
pub mod selection;
pub mod session;
pub mod similar;
pub mod spec;
pub mod target;
pub mod view;
pub mod windows;
