//! JSON schemas that refer to each other.

use std::collections::BTreeMap;

use tiphys_value::Value;

/// The schemas of a chart's files, seen from one of them.
pub(super) struct Schemas<'a> {
    files: &'a BTreeMap<String, Value>,
    here: String,
}

impl<'a> Schemas<'a> {
    /// The schemas of files, seen from the file of a name.
    pub(super) fn seen_from(files: &'a BTreeMap<String, Value>, here: &str) -> Self {
        Self { files, here: here.to_owned() }
    }

    /// What a reference leads to, and the schemas seen from there; nothing if it leads out of the chart.
    pub(super) fn find(&self, reference: &str) -> Option<(&'a Value, Self)> {
        let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let file = match file {
            "" => self.here.clone(),
            file => {
                // Published schemas name their neighbours by the address that they are published at.
                let folder = self.here.rsplit_once('/').map_or("", |(folder, _)| folder);
                let beside = format!("{folder}/{file}");
                let beside = beside.trim_start_matches('/');
                let known = self.files.keys().find(|known| *known == beside);
                known
                    .or_else(|| self.files.keys().find(|known| file.ends_with(&format!("/{known}"))))?
                    .clone()
            }
        };
        let meant = self.files.get(&file)?.pointer(pointer)?;
        Some((meant, Self { files: self.files, here: file }))
    }
}
