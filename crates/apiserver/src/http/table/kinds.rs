//! The columns of built-in kinds and how their cells are found.

mod network;
mod other;
mod policy;
mod printer;
mod storage;
mod workload;

pub(super) use printer::Cells;
use printer::{
    NONE, Printer, UNSET, container_images, container_names, go_bool, joined, labels, name, number, row,
    selector, size, text, text_or,
};

use super::cells::Column;

/// The printer of a kind; kinds without one show name and creation time.
pub(super) fn printer(kind: &str) -> Option<(Vec<Column>, Cells)> {
    let (columns, cells) = workload::printer(kind)
        .or_else(|| network::printer(kind))
        .or_else(|| storage::printer(kind))
        .or_else(|| policy::printer(kind))
        .or_else(|| other::printer(kind))?;
    Some((columns.iter().map(|text| column(text)).collect(), cells))
}

fn column(text: &str) -> Column {
    let (text, priority) = text.strip_prefix('!').map_or((text, 0), |rest| (rest, 1));
    match text {
        "Name" => Column::new(text, "string", priority).formatted("name"),
        _ => match text.split_once(':') {
            Some((name, kind)) if kind.contains(':') => {
                let (kind, format) = kind.split_once(':').unwrap_or((kind, ""));
                Column::new(name, kind, priority).formatted(format)
            }
            Some((name, kind)) => Column::new(name, kind, priority),
            None => Column::new(text, "string", priority),
        },
    }
}
