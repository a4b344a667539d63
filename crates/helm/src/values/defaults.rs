//! A chart's own values, and what is worked out of them once for all renderings.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;

use super::{Table, Val};
use crate::{Compat, HelmError};

/// What Helm logs on standard error.
pub(crate) type Warnings = Vec<String>;

/// The values of a chart's `values.yaml`.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    table: Table,
    has_null: OnceLock<bool>,
}

impl Defaults {
    /// Whether there is a `null` in tables, at any depth.
    pub(super) fn has_null(&self) -> bool {
        *self.has_null.get_or_init(|| has_null(&self.table))
    }
}

impl From<Table> for Defaults {
    fn from(table: Table) -> Self {
        Self { table, has_null: OnceLock::new() }
    }
}

impl Deref for Defaults {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

/// What the last rendering made of a chart's own values and those of its subcharts.
#[derive(Debug, Default)]
pub(crate) struct MergeCache(Mutex<Option<Merged>>);

#[derive(Debug)]
struct Merged {
    /// What it was made of.
    compat: Compat,
    charts: Vec<Part>,
    values: Arc<Defaults>,
    warnings: Warnings,
}

/// A chart by what merging takes from it.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    /// How many charts stand below it.
    pub(super) below: usize,
    pub(super) values: Arc<Defaults>,
}

impl MergeCache {
    /// The merged values of these charts, kept from the last rendering if it was of the same, else as `merge`
    /// makes them.
    ///
    /// # Errors
    /// Those of `merge`.
    pub(super) fn get_or_merge(
        &self,
        compat: Compat,
        charts: Vec<Part>,
        warnings: &mut Warnings,
        merge: impl FnOnce(&mut Warnings) -> Result<Table, HelmError>,
    ) -> Result<Arc<Defaults>, HelmError> {
        let mut cached = self.0.lock();
        if let Some(merged) = &*cached
            && merged.compat == compat
            && merged.charts.len() == charts.len()
            && merged.charts.iter().zip(&charts).all(|(known, part)| known.is_same(part))
        {
            warnings.extend_from_slice(&merged.warnings);
            return Ok(merged.values.clone());
        }
        let mut own_warnings = Warnings::new();
        let values = merge(&mut own_warnings);
        warnings.extend_from_slice(&own_warnings);
        let values: Arc<Defaults> = Arc::new(values?.into());
        *cached = Some(Merged { compat, charts, values: values.clone(), warnings: own_warnings });
        Ok(values)
    }
}

impl Part {
    fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.below == other.below && Arc::ptr_eq(&self.values, &other.values)
    }
}

pub(super) fn has_null(table: &Table) -> bool {
    table.values().any(|value| match value {
        Val::Null => true,
        Val::Table(table) => has_null(table),
        _ => false,
    })
}
