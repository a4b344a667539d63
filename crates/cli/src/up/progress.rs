//! How far the Applications of a repository have come.

use jiff::Timestamp;
use tiphys_controller::{AppKey, Controller};

use super::app_rows::{self, Row, SeenRows};

/// The Applications as they stand, and what the engine knows of them.
#[derive(Clone, Copy)]
pub(crate) struct Progress<'a> {
    /// The engine.
    pub controller: &'a Controller,
    /// The Applications.
    pub rows: &'a [Row],
    /// The time on the cluster's clock.
    pub now: Timestamp,
    /// Whether somebody asks for a sync of what nobody else would.
    pub syncs_all: bool,
}

/// The Applications of an engine, and those that its cluster did not take.
pub(crate) fn rows_of(controller: &Controller, refused: &[Row], seen: &mut SeenRows) -> Vec<Row> {
    let mut rows = app_rows::from_cache(controller.cache(), seen);
    for row in rows.iter_mut().filter(|row| !row.is_set) {
        row.is_out_of_reach = controller.is_out_of_reach(&key_of(row));
    }
    rows.extend(refused.iter().cloned());
    rows
}

fn key_of(row: &Row) -> AppKey {
    AppKey { namespace: row.namespace.clone(), name: row.name.clone() }
}

impl Progress<'_> {
    /// Whether something that the repository needs cannot be had from here.
    pub(crate) fn is_anything_out_of_reach(&self) -> bool {
        self.rows.iter().any(|row| match row.is_set {
            true => row.is_invalid,
            false => row.is_out_of_reach,
        })
    }

    /// Whether the engine has looked at each of them.
    pub(crate) fn has_seen_all(&self) -> bool {
        self.rows.iter().all(|row| self.has_seen(row))
    }

    /// Whether everything that is not green cannot become green by itself: it does not render, its sources
    /// cannot be had (hosts are asked again after minutes), its spec is invalid, only a person would sync it,
    /// its sync has failed several times, or it waits for such an Application.
    pub(crate) fn is_stuck(&self) -> bool {
        let rows = self.rows;
        let broken = |row: &Row| {
            row.is_invalid
                || row.is_out_of_reach
                || row.fails_again_and_again(self.now)
                || (row.waits_for_a_person() && (!self.syncs_all || row.phase.is_some()))
                || (!row.is_set && self.controller.is_broken(&key_of(row)))
        };
        let waits_for_broken = |row: &Row| {
            let names: Vec<&str> =
                rows.iter().filter(|row| broken(row)).map(|row| row.name.as_str()).collect();
            let awaited: Vec<_> = row.awaited_applications().collect();
            !awaited.is_empty() && awaited.iter().all(|name| names.contains(name))
        };
        !rows.is_empty()
            && rows.iter().all(|row| self.has_seen(row))
            && rows.iter().filter(|row| !row.is_green()).all(|row| broken(row) || waits_for_broken(row))
    }

    /// Whether the engine has looked at an Application.
    pub(crate) fn has_seen(&self, row: &Row) -> bool {
        row.is_set || row.is_refused || self.controller.has_seen(&key_of(row))
    }

    /// Whether all is well.
    pub(crate) fn is_green(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.is_green() && self.has_seen(row))
    }
}
