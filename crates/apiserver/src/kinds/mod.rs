//! What the server does otherwise for one built-in kind than for another, beyond schemas, defaults and
//! validation: a [`Kind`] for each of them, by API group. Code that serves every kind asks here and names
//! none.

mod admission_policies;
mod apps;
mod batch;
mod claims;
mod cluster;
mod core;
mod daemon_sets;
mod definitions;
mod ephemeral_containers;
mod kind;
mod namespaces;
mod networking;
mod pods;
mod requests;
mod services;
mod storage;

pub(crate) use kind::{Generation, Kind, NameRule};
pub(crate) use pods::qos_class;

pub(crate) use services::{families_given, forget_families};

use kind::{PLAIN, StatusWrite};

/// A kind that this table does not have.
static UNKNOWN: Kind = PLAIN;

/// Kinds that definitions make.
pub(crate) static CUSTOM: Kind = Kind {
    has_free_finalizers: true,
    generation: Generation::Spec,
    status_write: StatusWrite::ALONE,
    is_updated_by_version: true,
    ..PLAIN
};

/// What is known of a built-in kind.
pub(crate) fn built_in(group: &str, plural: &str) -> &'static Kind {
    let tables = [core::KINDS, apps::KINDS, batch::KINDS, networking::KINDS, storage::KINDS, cluster::KINDS];
    let mut all = tables.into_iter().flatten();
    all.find(|kind| kind.group == group && kind.plural == plural).unwrap_or(&UNKNOWN)
}
