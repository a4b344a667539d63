//! What the commands on Applications share: the cluster that they live in, operations and their end,
//! desired and live objects.

pub mod cluster_choice;
pub mod consent;
pub mod desired;
pub mod name_suggestions;
pub mod operation_end;
pub mod selection;
pub mod session;
pub mod spec;
pub mod view;
pub mod windows;
