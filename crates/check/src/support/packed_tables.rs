//! Tables that the program carries packed: as texts they would be a twentieth of it. `build.rs` packs them.

use std::{io::Read as _, sync::OnceLock};

use flate2::read::DeflateDecoder;

/// What stands before each table, with its name behind.
const MARK: char = '\0';

/// The tables of one folder below `data`, unpacked when they are first asked for.
pub(crate) struct PackedTables {
    packed: &'static [u8],
    text: OnceLock<String>,
    tables: OnceLock<Vec<(&'static str, &'static str)>>,
}

impl PackedTables {
    /// Tables that `build.rs` packed.
    pub(crate) const fn new(packed: &'static [u8]) -> Self {
        Self { packed, text: OnceLock::new(), tables: OnceLock::new() }
    }

    /// Each table with its name: its file's, without `.txt`. In the order of these names.
    pub(crate) fn all(&'static self) -> &'static [(&'static str, &'static str)] {
        self.tables.get_or_init(|| {
            let tables = self.text().split(MARK).skip(1);
            tables.filter_map(|table| table.split_once('\n')).collect()
        })
    }

    fn text(&'static self) -> &'static str {
        self.text.get_or_init(|| {
            let mut text = String::new();
            DeflateDecoder::new(self.packed).read_to_string(&mut text).expect("packed by the build script");
            text
        })
    }
}
