//! What the commands on Applications share: the cluster that they live in, operations and their end,
//! desired and live objects.

pub(crate) mod cluster_choice;
pub(crate) mod consent;
pub(crate) mod desired;
pub(crate) mod operation_end;
pub(crate) mod selection;
pub(crate) mod session;
pub(crate) mod spec;
pub(crate) mod view;
pub(crate) mod windows;
