//! Putting the values of a chart, of its subcharts and of the user together, as Helm does.
//!
//! Helm works on shared mutable maps, which shows in two places that are kept here: the tables two
//! levels below `global` are one object in a chart and in all its subcharts, and the merge into a
//! table deletes by `null`. In *merge* mode `null`s are kept for a later coalescing.

use std::sync::Arc;

use tiphys_gocompat::strconv::quote;

use super::{GLOBAL, Table, Val, Warnings, defaults::has_null};
use crate::{Chart, Compat, HelmError, log_text::log_text};

struct Coalescer<'a> {
    warnings: &'a mut Warnings,
    compat: Compat,
    merge: bool,
}

/// The values of a chart under those that were given, `null`s removed what they stood for.
///
/// # Errors
/// A value that is no table stands where a subchart's table belongs.
pub(crate) fn coalesce_values(
    chart: &Chart,
    given: &Table,
    compat: Compat,
    warnings: &mut Warnings,
) -> Result<Table, HelmError> {
    run(chart, given, compat, warnings, false)
}

/// As [`coalesce_values`], but `null`s stay.
///
/// # Errors
/// As [`coalesce_values`].
pub(crate) fn merge_values(
    chart: &Chart,
    given: &Table,
    compat: Compat,
    warnings: &mut Warnings,
) -> Result<Table, HelmError> {
    run(chart, given, compat, warnings, true)
}

fn run(
    chart: &Chart,
    given: &Table,
    compat: Compat,
    warnings: &mut Warnings,
    merge: bool,
) -> Result<Table, HelmError> {
    let mut values = given.clone();
    Coalescer { warnings, compat, merge }.chart(chart, &mut values, "")?;
    Ok(values)
}

/// Fills `dst` with what only `src` has; `null`s stay.
pub(crate) fn merge_tables(dst: &mut Table, src: Table, compat: Compat, warnings: &mut Warnings) {
    Coalescer { warnings, compat, merge: true }.tables(dst, src, "", true);
}

fn concat_prefix(a: &str, b: &str) -> String {
    if a.is_empty() { b.to_owned() } else { format!("{a}.{b}") }
}

impl Coalescer<'_> {
    fn chart(&mut self, chart: &Chart, dest: &mut Table, prefix: &str) -> Result<(), HelmError> {
        self.defaults(chart, dest, prefix);
        self.subcharts(chart, dest, prefix)
    }

    fn subcharts(&mut self, chart: &Chart, dest: &mut Table, prefix: &str) -> Result<(), HelmError> {
        if chart.dependencies.is_empty() {
            return Ok(());
        }
        let sub_prefix = concat_prefix(prefix, chart.name());
        for subchart in &chart.dependencies {
            let name: Arc<str> = Arc::from(subchart.name());
            // Taken out, so that the chart's own table can be written while the subchart's is.
            let mut table = match dest.remove(&name) {
                None => Arc::default(),
                Some(Val::Table(table)) => table,
                Some(other) => {
                    let shown = go_t_verb(&other);
                    return Err(HelmError::Values(format!("type mismatch on {name}: {shown}")));
                }
            };
            let sub = Arc::make_mut(&mut table);
            self.globals(sub, dest, &sub_prefix);
            self.chart(subchart, sub, &sub_prefix)?;
            share_globals(sub, dest);
            dest.insert(name, Val::Table(table));
        }
        push_globals(chart, dest);
        Ok(())
    }

    /// Warns as Helm logs: Helm 3 with the line of its `coalesce.go`.
    fn warn(&mut self, line: u32, text: &str) {
        self.warnings.push(match self.compat {
            Compat::Helm4 => format!("level=INFO msg={}", log_text(text)),
            Compat::Helm3 => format!("coalesce.go:{line}: {text}"),
        });
    }

    /// Gives a subchart the globals of the chart above it.
    fn globals(&mut self, dest: &mut Table, src: &Table, prefix: &str) {
        let mut dest_globals = match dest.get(GLOBAL) {
            None => Table::new(),
            Some(Val::Table(table)) => (**table).clone(),
            Some(_) => {
                return self
                    .warn(138, "warning: skipping globals because destination global is not a table.");
            }
        };
        let src_globals = match src.get(GLOBAL) {
            None => Arc::default(),
            Some(Val::Table(table)) => table.clone(),
            Some(_) => {
                return self.warn(145, "warning: skipping globals because source global is not a table.");
            }
        };
        for (key, value) in src_globals.iter() {
            match (value, dest_globals.get(key)) {
                (Val::Table(_), None) => {
                    dest_globals.insert(key.clone(), value.clone());
                }
                (Val::Table(table), Some(Val::Table(own))) => {
                    let mut merged = (**table).clone();
                    self.tables(&mut merged, (**own).clone(), &concat_prefix(prefix, key), true);
                    dest_globals.insert(key.clone(), Val::Table(Arc::new(merged)));
                }
                (Val::Table(_), Some(_)) => {
                    self.warn(
                        161,
                        &format!("Conflict: cannot merge map onto non-map for {}. Skipping.", quote(key)),
                    );
                }
                (_, Some(Val::Table(_))) => self.warn(175, &format!("key {key} is table. Skipping")),
                _ => {
                    dest_globals.insert(key.clone(), value.clone());
                }
            }
        }
        dest.insert(Arc::from(GLOBAL), Val::Table(Arc::new(dest_globals)));
    }

    /// Puts a chart's own `values.yaml` under what was given.
    fn defaults(&mut self, chart: &Chart, dest: &mut Table, prefix: &str) {
        let sub_prefix = concat_prefix(prefix, chart.name());
        let cleans = !self.merge && self.compat == Compat::Helm4 && chart.values.has_null();
        for (key, default) in chart.values.iter() {
            match (dest.get_mut(key), default) {
                (Some(Val::Null), _) if !self.merge => {
                    dest.remove(key);
                }
                (Some(Val::Table(dest)), Val::Table(src)) => {
                    let merge = self.merge || chart.dependencies.iter().any(|sub| sub.name() == &**key);
                    let mut src = (**src).clone();
                    if !merge && cleans {
                        clean_nulls(&mut src);
                    }
                    self.tables(Arc::make_mut(dest), src, &concat_prefix(&sub_prefix, key), merge);
                }
                (Some(Val::Table(_)), Val::Null) => {}
                (Some(Val::Table(_)), _) => {
                    self.warn(237, &format!("warning: skipped value for {sub_prefix}.{key}: Not a table."));
                }
                (Some(_), _) => {}
                (None, default) => add_default(dest, key, default, cleans),
            }
        }
    }

    /// Fills `dst` with what only `src` has.
    fn tables(&mut self, dst: &mut Table, mut src: Table, prefix: &str, merge: bool) {
        let null_in_dst: Vec<_> =
            dst.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key.clone()).collect();
        for key in null_in_dst {
            // Helm 4 keeps a null that stands over nothing, for a table further up.
            let stood_over = src.insert(key.clone(), Val::Null).is_some_and(|value| !value.is_null());
            if !merge && (stood_over || self.compat == Compat::Helm3) {
                dst.remove(&key);
                src.remove(&key);
            }
        }
        for (key, value) in src {
            let Some(own) = dst.get_mut(&key) else {
                dst.insert(key, value);
                continue;
            };
            match (own, value) {
                (Val::Table(own), Val::Table(src)) => {
                    let full = concat_prefix(prefix, &key);
                    let src = Arc::unwrap_or_clone(src);
                    self.tables(Arc::make_mut(own), src, &full, merge);
                }
                (_, value @ Val::Table(_)) => {
                    let (at, value) = (concat_prefix(prefix, &key), value.go_print());
                    self.warn(
                        303,
                        &format!("warning: cannot overwrite table with non table for {at} ({value})"),
                    );
                }
                (Val::Table(_), value) if !value.is_null() => {
                    let (at, value) = (concat_prefix(prefix, &key), value.go_print());
                    let text = format!(
                        "warning: destination for {at} is a table. Ignoring non-table value ({value})"
                    );
                    self.warn(306, &text);
                }
                _ => {}
            }
        }
    }
}

/// What Go prints for `%t` of a value that is no bool, as Helm's type mismatch does.
fn go_t_verb(value: &Val) -> String {
    // Nothing is printed clearly inside of something else.
    let inner = |value: &Val| if value.is_null() { "<nil>".to_owned() } else { go_t_verb(value) };
    match value {
        Val::Null => "%!t(<nil>)".to_owned(),
        Val::Bool(bool) => bool.to_string(),
        Val::List(items) => format!("[{}]", items.iter().map(inner).collect::<Vec<_>>().join(" ")),
        Val::Table(table) => {
            let pairs: Vec<_> =
                table.iter().map(|(key, value)| format!("%!t(string={key}):{}", inner(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => format!("%!t({}={})", other.go_type(), other.go_print()),
    }
}

fn add_default(dest: &mut Table, key: &Arc<str>, default: &Val, cleans: bool) {
    let mut value = default.clone();
    if cleans {
        match &mut value {
            Val::Null => return,
            Val::Table(table) if has_null(table) => clean_nulls(Arc::make_mut(table)),
            _ => {}
        }
    }
    dest.insert(key.clone(), value);
}

/// Removes nulls at any depth of tables (lists are left alone).
fn clean_nulls(table: &mut Table) {
    table.retain(|_, value| !value.is_null());
    for value in table.values_mut() {
        if let Val::Table(table) = value
            && has_null(table)
        {
            clean_nulls(Arc::make_mut(table));
        }
    }
}

/// What a subchart wrote into the tables below `global.<key>` is seen by the chart above.
fn share_globals(sub: &Table, dest: &mut Table) {
    copy_shared(sub, dest, |sub_table, own| *own = sub_table.clone());
}

/// What later subcharts wrote into the shared tables is seen by the earlier ones, at any depth.
fn push_globals(chart: &Chart, dest: &mut Table) {
    for subchart in &chart.dependencies {
        let name: Arc<str> = Arc::from(subchart.name());
        let Some(Val::Table(mut table)) = dest.remove(&name) else { continue };
        let sub = Arc::make_mut(&mut table);
        copy_shared(dest, sub, |own, sub_table| *sub_table = own.clone());
        push_globals(subchart, sub);
        dest.insert(name, Val::Table(table));
    }
}

/// Calls `copy` for each pair of tables that both charts have at `global.<key>.<nested>`.
fn copy_shared(from: &Table, to: &mut Table, copy: impl Fn(&Arc<Table>, &mut Arc<Table>)) {
    let Some(Val::Table(from)) = from.get(GLOBAL) else { return };
    let Some(Val::Table(to)) = to.get_mut(GLOBAL) else { return };
    for (key, value) in from.iter() {
        let Val::Table(from) = value else { continue };
        for (nested, value) in from.iter() {
            let Val::Table(from) = value else { continue };
            let Some(Val::Table(known)) = to.get(key).and_then(Val::as_table).and_then(|t| t.get(nested))
            else {
                continue;
            };
            if Arc::ptr_eq(from, known) || from == known {
                continue;
            }
            let table = Arc::make_mut(to).get_mut(key).and_then(Val::as_table_mut);
            if let Some(Val::Table(to)) = table.and_then(|table| table.get_mut(nested)) {
                copy(from, to);
            }
        }
    }
}
